import Glibc

/// The path of a Unix socket in a form that fits a socket address.
///
/// An address holds 107 bytes on Linux; swift-nio takes 103, as other systems do. For a longer path this opens the socket's folder, and addresses the socket through
/// `/proc/self/fd`. That form lasts as long as this object.
package final class SocketPath: Sendable {
  /// Bytes of a path that can be given to a socket as it is, without the NUL.
  package static let maximumLength = 103

  /// The path to give to `bind` and `connect`.
  package let address: String
  private let folder: CInt?

  /// - Throws: ``SheafError``: `notFound` if the socket's folder does not exist, `nameTooLong` if even the name of the
  ///   socket is too long for an address.
  package init(_ path: String) throws(SheafError) {
    guard path.utf8.count > Self.maximumLength else {
      address = path
      folder = nil
      return
    }
    let bytes = Array(path.utf8)
    let slash = bytes.lastIndex(of: UInt8(ascii: "/"))
    let parent = slash.map { $0 == 0 ? "/" : String(decoding: bytes[..<$0], as: UTF8.self) } ?? "."
    let name = String(decoding: bytes[((slash ?? -1) + 1)...], as: UTF8.self)
    let descriptor = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw SheafError(.notFound, subject: parent.printable, reason: String(cString: strerror(errno)))
    }
    do throws(SheafError) {
      address = try Self.address(of: name, in: descriptor)
    } catch {
      close(descriptor)
      throw error
    }
    folder = descriptor
  }

  /// The address of the socket of a name in a folder that this process has open.
  ///
  /// - Throws: ``SheafError``: `nameTooLong`.
  package static func address(of name: String, in folder: CInt) throws(SheafError) -> String {
    let address = "/proc/self/fd/\(folder)/\(name)"
    guard address.utf8.count <= maximumLength else {
      throw SheafError(
        .nameTooLong, subject: name.printable, reason: "is too long a name for a socket",
        advice: "give the library a shorter name")
    }
    return address
  }

  deinit {
    if let folder { close(folder) }
  }
}
