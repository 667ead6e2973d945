import Glibc

/// The place of a service's Unix socket: a name in a folder that is held open. A user who can swap a folder above it
/// can make a process of root's neither create a socket elsewhere, nor remove another one.
package final class ServiceSocket: Sendable {
  /// The path to bind.
  package let address: String
  private let name: String
  private let folder: CInt

  /// - Parameter folder: The descriptor of the folder, which is this object's from now on.
  /// - Throws: ``SheafError``: `nameTooLong`.
  package init(_ name: String, in folder: CInt) throws(SheafError) {
    do throws(SheafError) {
      address = try SocketPath.address(of: name, in: folder)
    } catch {
      close(folder)
      throw error
    }
    self.name = name
    self.folder = folder
  }

  deinit { close(folder) }

  /// Gives the bound socket to a user; nobody else can use it.
  package func give(to user: UInt32, group: UInt32) throws(SheafError) {
    guard fchownat(folder, name, user, group, AT_SYMLINK_NOFOLLOW) == 0 else {
      throw SheafError(systemError: errno, subject: name.printable)
    }
  }

  package func remove() { unlinkat(folder, name, 0) }
}
