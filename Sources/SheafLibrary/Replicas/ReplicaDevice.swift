import Glibc
import SheafModel
import SheafStore

/// Which device of its account a library is. Its key lies outside of the library, since a copied library is no device:
/// here stands only which one it is.
package struct ReplicaDevice: Hashable, Sendable {
  /// By which its hub knows it.
  package let id: String
  /// Whether it is this very file that became the device; else it was copied, or put back from a backup, and another
  /// file may be the device, too.
  package let isOriginal: Bool
}

extension Library {
  /// The device that a connected account is here; nil for one that an earlier program connected.
  package func replicaDevice(_ account: Int64) throws -> ReplicaDevice? {
    try locked {
      let text = try read { try $0.setting(Self.deviceKey(account)) }
      guard let words = text?.split(separator: " ", maxSplits: 1), let id = words.first else { return nil }
      return ReplicaDevice(id: String(id), isOriginal: words.last.map(String.init) == fileMark)
    }
  }

  /// Notes which device a connected account is here.
  package func setReplicaDevice(_ id: String, of account: Int64) throws {
    try locked {
      _ = try connected(account)
      try makeChange(.replica) { try $0.rows.setSetting(Self.deviceKey(account), "\(id) \(fileMark)") }
    }
  }

  /// Forgets which device an account was.
  func forgetReplicaDevice(of account: Int64, _ change: Change) throws {
    try change.rows.setSetting(Self.deviceKey(account), nil as String?)
  }

  private static func deviceKey(_ account: Int64) -> String { "device.\(account)" }

  /// What a copy of the library's file has otherwise.
  private var fileMark: String {
    var status = stat()
    return stat(location.path, &status) == 0 ? "\(status.st_dev) \(status.st_ino)" : ""
  }
}
