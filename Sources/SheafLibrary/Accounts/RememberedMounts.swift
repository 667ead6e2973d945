import Foundation
package import SheafModel
import SheafStore

/// The mounts that `sheaf mount --all` makes again: those that nobody took away by `sheaf unmount`.
///
/// They are kept with the library's path, so that a backup, or a library that was moved, does not mount where the
/// original does.
///
/// Rooms: `AccountTable`.
extension Library {
  /// The most mounts that a library remembers. Further ones work, and do not come back by themselves.
  package static let rememberedMountLimit = 1_000

  /// The mounts, by their mount points; nothing where they cannot be read.
  package func rememberedMounts() throws -> [MountRequest] { try locked { try currentlyRemembered() } }

  /// Remembers a mount, in place of one that was made at its mount point.
  ///
  /// - Throws: `noSpace` where the disk is full.
  package func rememberMount(_ mount: MountRequest) throws {
    try locked {
      let others = try currentlyRemembered().filter { $0.mountpoint != mount.mountpoint }
      guard others.count < Self.rememberedMountLimit else { return }
      try setRemembered(others + [mount])
    }
  }

  /// Forgets the mount at a mount point; returns whether it was remembered.
  package func forgetMount(at mountpoint: String) throws -> Bool {
    try locked {
      let mounts = try currentlyRemembered()
      let others = mounts.filter { $0.mountpoint != mountpoint }
      guard others.count < mounts.count else { return false }
      try setRemembered(others)
      return true
    }
  }

  private func currentlyRemembered() throws -> [MountRequest] {
    guard let text = try read({ try $0.setting(Self.mountsKey) }),
      let record = try? JSONDecoder().decode(MountRecord.self, from: Data(text.utf8)), record.library == location.path
    else { return [] }
    let accounts = Set(accountTable.present.map(\.handle))
    return record.mounts.filter { accounts.contains($0.account) }
  }

  private func setRemembered(_ mounts: [MountRequest]) throws {
    let record = MountRecord(library: location.path, mounts: mounts.sorted { $0.mountpoint < $1.mountpoint })
    let text = mounts.isEmpty ? nil : String(decoding: try JSONEncoder().encode(record), as: UTF8.self)
    try makeChange(.accounts, freesSpace: mounts.isEmpty) { try $0.rows.setSetting(Self.mountsKey, text) }
  }

  private static let mountsKey = "mounts"
}

/// The value of the setting.
private struct MountRecord: Codable {
  /// Path of the library that was mounted.
  let library: String
  let mounts: [MountRequest]
}
