/// How much of an item of a connected account is on this machine.
package struct LocalContents: Hashable, Sendable, Codable {
  package let path: String
  /// What a person said of it, or of the nearest folder above it: true if it is kept here, false if it was freed.
  @OrNull package var isKept: Bool?
  package var documents: Int64 = 0
  /// Bytes of the documents.
  package var bytes: Int64 = 0
  /// Documents of which something is not on this machine, and the bytes that are not.
  package var absentDocuments: Int64 = 0
  package var absentBytes: Int64 = 0
  /// Those of them that a person freed, and that come when they are read.
  package var freedDocuments: Int64 = 0

  package init(path: String, isKept: Bool?) {
    self.path = path
    self.isKept = isKept
  }
}

/// Whether an item's contents are to be on this machine; nil for what holds elsewhere.
package struct KeptRequest: Hashable, Sendable, Codable {
  @OrNull package var isKept: Bool?

  package init(isKept: Bool?) { self.isKept = isKept }
}

/// The end of an account's connection with its hub.
package struct Disconnection: Hashable, Sendable, Codable {
  package let account: AccountHandle
  /// Documents that went, since nothing of their contents was here.
  package let removed: Int
  /// Whether this machine is no device of the account any more. The hub was not reached where it is.
  package let isDeviceRemoved: Bool

  package init(account: AccountHandle, removed: Int, isDeviceRemoved: Bool) {
    self.account = account
    self.removed = removed
    self.isDeviceRemoved = isDeviceRemoved
  }
}

/// What freeing an item's contents came to.
package struct FreedContents: Hashable, Sendable, Codable {
  package let path: String
  package var documents: Int64 = 0
  /// Bytes of contents, earlier versions among them.
  package var bytes: Int64 = 0
  /// Documents that stay since a program has them open, the hub does not have them yet, or has had them for less than a
  /// day.
  package var open: Int64 = 0
  package var unsent: Int64 = 0
  package var recent: Int64 = 0

  package init(path: String) { self.path = path }
}
