import Foundation
import SheafModel
import SheafStore

/// What stands in an account's `Shared/OWNER/`.
extension Library {
  /// An entry of `Shared/OWNER/`.
  package struct SharedEntry: Hashable, Sendable {
    package let name: [UInt8]
    /// The shared item.
    let share: Int64
    package let ino: Int64
  }
}
