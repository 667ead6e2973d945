/// For how long a folder of an account keeps deleted items and versions, as its owner said.
public struct FolderRetention: Hashable, Sendable, Codable {
  public let item: WireID
  /// Seconds; nil where a folder around it, or the hub, decides.
  public let keepDeleted: Int64?
  public let keepVersions: Int64?

  public init(item: WireID, keepDeleted: Int64?, keepVersions: Int64?) {
    self.item = item
    self.keepDeleted = keepDeleted
    self.keepVersions = keepVersions
  }

  /// Whether the spans are ones that can be said.
  public var isSound: Bool { keepDeleted.isKeptSpan && keepVersions.isKeptSpan }
}

/// `GET /v1/retentions`: what folders of the account say, and what the hub does where none says anything.
public struct RetentionList: Hashable, Sendable, Codable {
  public let folders: [FolderRetention]
  /// Seconds of the hub's own rules; nil for ever.
  public let keepDeleted: Int64?
  public let keepVersions: Int64?

  public init(folders: [FolderRetention], keepDeleted: Int64?, keepVersions: Int64?) {
    self.folders = folders
    self.keepDeleted = keepDeleted
    self.keepVersions = keepVersions
  }

  /// Whether it is what a hub can answer.
  public var isSound: Bool {
    folders.count <= WireLimits.retainingFolders && folders.allSatisfy(\.isSound)
      && Set(folders.map(\.item)).count == folders.count
      && keepDeleted.isKeptSpan && keepVersions.isKeptSpan
  }
}

extension Int64? {
  /// Whether things can be kept for so many seconds, or nothing is said of that.
  fileprivate var isKeptSpan: Bool { map { WireLimits.keptSeconds.contains($0) } ?? true }
}

/// `PUT /v1/items/ITEM/retention`: what a folder is to say; nothing without spans.
public struct SentRetention: Hashable, Sendable, Codable {
  /// Seconds.
  public let keepDeleted: Int64?
  public let keepVersions: Int64?

  public init(keepDeleted: Int64?, keepVersions: Int64?) {
    self.keepDeleted = keepDeleted
    self.keepVersions = keepVersions
  }
}
