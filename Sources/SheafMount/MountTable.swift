package import Fuse
package import SheafModel

package typealias MountTable = Fuse.MountTable

extension Fuse.MountTable {
  /// Reads the table of this process.
  package static func current() throws(SheafError) -> MountTable {
    do {
      return try read()
    } catch {
      throw SheafError(.inputOutput, subject: "/proc/self/mountinfo", reason: error.description)
    }
  }
}

extension Fuse.MountTable.Entry {
  /// Whether it is a mount of a library.
  package var isSheaf: Bool { type == "fuse.sheaf" }
}
