package import SheafModel

/// What changed through a door, for the others' caches.
package enum LibraryChange: Hashable, Sendable {
  /// Data and attributes of an inode.
  case contents(Int64)
  /// As `contents`, by another account, which has saved: who reads now reads that.
  case saved(Int64)
  /// Attributes of an inode.
  case attributes(Int64)
  /// A name in a folder came, went or means another inode.
  case entry(parent: Int64, name: [UInt8])
  /// An entry of the account's `Shared/OWNER/` came, went or means another inode.
  case sharedEntry(owner: Int64, name: [UInt8])
  /// A folder of the account's `Shared` came or went.
  case sharedOwner(AccountHandle)
  /// What the account may see or do of what others share.
  case access
}
