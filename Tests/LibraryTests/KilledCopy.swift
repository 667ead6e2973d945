import Foundation
import Glibc
import SheafModel
import SheafStore

@testable import SheafLibrary

extension Library {
  /// Copies into a folder what a kill of this process would leave at this moment to the next one.
  ///
  /// - Parameter folder: One that is not there yet.
  func copyAsKilled(to folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try store.syncLog()
    try locked {
      try store.read { _ in
        for suffix in ["", "-wal", "-changes", "-working"] where access(location.path + suffix, F_OK) == 0 {
          try FileManager.default.copyItem(
            atPath: location.path + suffix, toPath: folder + "/library.sqlite" + suffix)
        }
      }
    }
  }
}
