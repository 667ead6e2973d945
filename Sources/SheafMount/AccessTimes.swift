import Fuse
import SheafLibrary

/// The reads that a mount notes in access times: FUSE leaves these times, and the options about them, to the file
/// system.
struct AccessTimes: Hashable {
  /// Not with `noatime`.
  private let ofFiles: Bool
  /// Not with `nodiratime` or `noatime`.
  private let ofFolders: Bool

  /// The handles of an open folder of the library: one for a folder whose reading is noted, one for a folder whose
  /// reading is not.
  private static let noted = FileHandle(rawValue: 0)
  private static let unnoted = FileHandle(rawValue: 1)

  /// - Parameter options: as of mount(8).
  init(_ options: [String]) {
    ofFiles = !options.contains("noatime")
    ofFolders = ofFiles && !options.contains("nodiratime")
  }

  /// Whether reading a symbolic link is noted.
  var notesLinks: Bool { ofFiles }

  /// The flags with which a file is opened.
  func flags(_ flags: OpenFlags) -> Int32 { ofFiles ? flags.rawValue : flags.rawValue | Library.noAccessTime }

  /// The handle under which a folder of the library is opened.
  func folderHandle(_ flags: OpenFlags) -> FileHandle {
    ofFolders && flags.rawValue & Library.noAccessTime == 0 ? Self.noted : Self.unnoted
  }

  /// Whether reading a folder by a handle is noted.
  func notes(_ handle: FileHandle) -> Bool { handle == Self.noted }
}
