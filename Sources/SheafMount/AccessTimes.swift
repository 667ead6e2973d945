import Fuse
import SheafLibrary

/// Which reads a mount notes in access times: FUSE leaves these to the file system, with the options about them.
struct AccessTimes: Hashable {
  /// Not with `noatime`.
  private let ofFiles: Bool
  /// Not with `nodiratime` or `noatime`.
  private let ofFolders: Bool

  /// The handle of an open folder of the library's whose reading is noted, and of one whose reading is not.
  private static let noted = FileHandle(rawValue: 0)
  private static let unnoted = FileHandle(rawValue: 1)

  /// - Parameter options: as of mount(8).
  init(_ options: [String]) {
    ofFiles = !options.contains("noatime")
    ofFolders = ofFiles && !options.contains("nodiratime")
  }

  /// Whether reading a symbolic link is noted.
  var notesLinks: Bool { ofFiles }

  /// What a file is opened with.
  func flags(_ flags: OpenFlags) -> Int32 { ofFiles ? flags.rawValue : flags.rawValue | Library.noAccessTime }

  /// What a folder of the library's is opened as.
  func folderHandle(_ flags: OpenFlags) -> FileHandle {
    ofFolders && flags.rawValue & Library.noAccessTime == 0 ? Self.noted : Self.unnoted
  }

  /// Whether reading a folder by a handle is noted.
  func notes(_ handle: FileHandle) -> Bool { handle == Self.noted }
}
