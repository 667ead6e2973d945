/// The requests of the API's clients, and the answers that are not already among the facts (docs/REFERENCE.md, "The
/// API").

/// The server of a library's API.
package struct ServiceInfo: Hashable, Sendable, Codable {
  /// Version of the API, the `1` of `/v1`.
  package let api: Int
  /// Path of the library file.
  package let library: String
  /// The library's id.
  package let id: String
  package let pid: Int32
  /// Whether the process stays and mounts on request; false for a command that serves only itself.
  package let mounts: Bool
  /// The one account that the socket is for, if root gave its mount to a user; nil for the library's own socket.
  @OrNull package var account: AccountHandle?

  package init(api: Int = 1, library: String, id: String, pid: Int32, mounts: Bool, account: AccountHandle? = nil) {
    self.api = api
    self.library = library
    self.id = id
    self.pid = pid
    self.mounts = mounts
    self.account = account
  }
}

/// Asks for a mount.
package struct MountRequest: Hashable, Sendable, Codable {
  /// Absolute path of an existing, empty folder.
  package var mountpoint: String
  package var account: AccountHandle
  package var readOnly: Bool
  /// Whether other Linux users may enter.
  package var allowOther: Bool
  /// The Linux user to whom root gives the mount; nil for the process's own.
  package var forUser: String?
  /// Further mount options, such as `noexec`, already checked to be known.
  package var options: [String]

  package init(
    mountpoint: String, account: AccountHandle, readOnly: Bool = false, allowOther: Bool = false,
    forUser: String? = nil, options: [String] = []
  ) {
    self.mountpoint = mountpoint
    self.account = account
    self.readOnly = readOnly
    self.allowOther = allowOther
    self.forUser = forUser
    self.options = options
  }
}

/// Answers an unmount.
package struct UnmountResult: Hashable, Sendable, Codable {
  package let mountpoint: String
  /// How many mounts the process still has; at 0 it ends.
  package let remaining: Int

  package init(mountpoint: String, remaining: Int) {
    self.mountpoint = mountpoint
    self.remaining = remaining
  }
}

/// Adds an account.
package struct AccountRequest: Hashable, Sendable, Codable {
  package let handle: AccountHandle
  package let name: String?

  package init(handle: AccountHandle, name: String?) {
    self.handle = handle
    self.name = name
  }
}

/// Changes the library's settings.
package struct SettingsChange: Hashable, Sendable, Codable {
  /// Host that links point to; empty removes it, nil leaves it as it is.
  package let publicAddress: String?
  /// The account that acts if none is named; nil leaves it as it is.
  package let defaultAccount: AccountHandle?
  /// nil leaves it as it is.
  package let rapidSaves: RapidSavesSetting?
  /// Seconds for which deleted items and versions are kept; nil leaves them as they are.
  package let keepDeleted: Int64?
  package let keepVersions: Int64?
  /// Whether a search looks into contents, too; nil leaves it as it is.
  package let searchContents: Bool?
  /// Bytes that contents of connected accounts may take on this machine, negative for no limit; nil leaves it as it is.
  package let cache: Int64?

  package init(
    publicAddress: String? = nil, defaultAccount: AccountHandle? = nil, rapidSaves: RapidSavesSetting? = nil,
    keepDeleted: Int64? = nil, keepVersions: Int64? = nil, searchContents: Bool? = nil, cache: Int64? = nil
  ) {
    self.cache = cache
    self.searchContents = searchContents
    self.publicAddress = publicAddress
    self.defaultAccount = defaultAccount
    self.rapidSaves = rapidSaves
    self.keepDeleted = keepDeleted
    self.keepVersions = keepVersions
  }
}

/// Changes for how long a folder keeps things.
package struct RetentionChange: Hashable, Sendable, Codable {
  /// Seconds; nil leaves what the folder says as it is.
  package let keepDeleted: Int64?
  package let keepVersions: Int64?
  /// Whether the folder says nothing any more but what this change has.
  package let isDefault: Bool

  /// The shortest span that can be asked for: a clock is not checked more closely than that.
  package static let shortestSpan: Int64 = 86_400

  package init(keepDeleted: Int64?, keepVersions: Int64?, isDefault: Bool) {
    self.keepDeleted = keepDeleted
    self.keepVersions = keepVersions
    self.isDefault = isDefault
  }
}

/// Makes an old version current again.
package struct RestoreRequest: Hashable, Sendable, Codable {
  package let version: Int64

  package init(version: Int64) { self.version = version }
}

/// Labels a version.
package struct LabelRequest: Hashable, Sendable, Codable {
  package let name: String
  /// Nil for the current one.
  package let version: Int64?

  package init(name: String, version: Int64?) {
    self.name = name
    self.version = version
  }
}

/// Brings a deleted item back.
package struct RecoverRequest: Hashable, Sendable, Codable {
  /// The id of the item among those deleted from the path; nil for the latest.
  package let id: String?

  package init(id: String?) { self.id = id }
}

/// What is brought back by a path.
package struct RecoverableItem: Hashable, Sendable, Codable {
  /// UUID in lower case; nil for a folder that is there, of which it is what was deleted last.
  @OrNull package var id: String?

  package init(id: String?) { self.id = id }
}

/// Asks where items are.
package struct PathsRequest: Hashable, Sendable, Codable {
  /// Ids of at most ``limit`` items.
  package let ids: [String]

  package static let limit = 1000

  package init(ids: [String]) { self.ids = ids }
}

/// The paths of items in an account's mount, by their ids; of deleted items the paths that they had. Items that the
/// account does not see are left out.
package struct ItemPaths: Sendable, Codable {
  package let paths: [String: String]

  package init(paths: [String: String]) { self.paths = paths }
}

/// Destroys an item, or one version of it.
package struct PurgeRequest: Hashable, Sendable, Codable {
  package let version: Int64?

  package init(version: Int64?) { self.version = version }
}

/// Copies the library.
package struct BackupRequest: Hashable, Sendable, Codable {
  /// Absolute path of a file that does not exist.
  package let file: String

  package init(file: String) { self.file = file }
}

/// One line of a long job's answer: its progress, and at the end its result.
package enum JobLine<Result: Codable & Sendable>: Codable, Sendable {
  case progress(Progress)
  case result(Result)
  case error(SheafError)

  private enum CodingKeys: CodingKey { case progress, result, error }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    if let progress = try container.decodeIfPresent(Progress.self, forKey: .progress) {
      self = .progress(progress)
    } else if let error = try container.decodeIfPresent(SheafError.self, forKey: .error) {
      self = .error(error)
    } else {
      self = .result(try container.decode(Result.self, forKey: .result))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .progress(let progress): try container.encode(progress, forKey: .progress)
    case .result(let result): try container.encode(result, forKey: .result)
    case .error(let error): try container.encode(error, forKey: .error)
    }
  }
}
