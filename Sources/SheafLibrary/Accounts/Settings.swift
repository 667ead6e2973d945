package import SheafModel
import SheafStore

/// Settings of a library as a whole.
///
/// Rooms: `AccountTable`.
extension Library {
  /// The settings, of which the default account is the library's first where none was set.
  package func settings() throws -> LibrarySettings { try locked { try currentSettings() } }

  /// Makes all of a change, or none of it; returns what the settings are then.
  ///
  /// - Throws: `invalid` for an address that is no host name and for a span that is too short, `notFound` for an account that is not here.
  package func change(_ change: SettingsChange) throws -> LibrarySettings {
    let address = change.publicAddress
    if let address, !address.isEmpty { try Self.checkHost(address) }
    let rapidSaves = change.rapidSaves
    let searchContents = change.searchContents
    let cache = change.cache
    for span in [change.keepDeleted, change.keepVersions] { try RetentionPolicy.check(span) }
    let settings = try locked {
      let account = try change.defaultAccount.map { try self.account($0) }
      let host = (address ?? "").isEmpty ? nil : address
      let former = try publicAddresses().filter { $0 != host }.prefix(Self.addressLimit)
      let spans = [
        (RetentionPolicy.deletedKey, change.keepDeleted), (RetentionPolicy.versionsKey, change.keepVersions),
      ]
      try makeChange(.accounts) { change in
        for (key, span) in spans { if let span { try change.rows.setSetting(key, span) } }
        if address != nil {
          try change.rows.setSetting("publicAddress", host)
          try change.rows.setSetting("formerAddresses", former.isEmpty ? nil : former.joined(separator: " "))
        }
        if let account { try change.rows.setSetting(Self.defaultKey, account.handle.description) }
        if let rapidSaves { try change.rows.setSetting(Self.rapidSavesKey, rapidSaves.rawValue) }
        if let searchContents { try setSearchesContents(searchContents, change) }
        if let cache {
          if cache < 0 {
            try change.rows.setSetting(Self.cacheKey, nil as String?)
          } else {
            try change.rows.setSetting(Self.cacheKey, cache)
          }
        }
      }
      return try currentSettings()
    }
    if searchContents != nil { try applySearchesContents() }
    return settings
  }

  /// The settings' keys.
  fileprivate static let defaultKey = "defaultAccount"
  private static let rapidSavesKey = "rapidSaves"
  private static let cacheKey = "cache"

  /// Bytes that contents of connected accounts may take on this machine; nil where nothing limits them.
  func cacheLimit() throws -> Int64? { try read { try $0.numberSetting(Self.cacheKey) } }

  /// Whether versions stay that follow each other faster than a person saves.
  func rapidSavesSetting() throws -> RapidSavesSetting {
    try read { try $0.setting(Self.rapidSavesKey) }.flatMap(RapidSavesSetting.init) ?? .thin
  }

  private func currentSettings() throws -> LibrarySettings {
    let (address, chosen) = try read { (try $0.setting("publicAddress"), try $0.setting(Self.defaultKey)) }
    let accounts = accountTable.present
    let account = accounts.first { $0.handle.description == chosen } ?? accounts.first
    let spans = try read { try RetentionPolicy($0).library }
    return LibrarySettings(
      publicAddress: address, defaultAccount: account?.handle, rapidSaves: try rapidSavesSetting(),
      keepDeleted: spans.deleted, keepVersions: spans.versions, searchContents: try searchesContents(),
      cache: try cacheLimit())
  }

  private static func checkHost(_ host: String) throws(SheafError) {
    let allowed = host.utf8.allSatisfy { byte in
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: ":")].contains(byte)
    }
    guard allowed, host.utf8.count <= 253 else {
      throw SheafError(
        .invalid, subject: host.printable, reason: "is not a host name",
        advice: "give a name such as docs.example.com")
    }
  }

  /// Former public addresses that links may still name.
  private static let addressLimit = 64

  /// The public addresses that this library has and had, the latest first.
  func publicAddresses() throws -> [String] {
    let (current, former) = try read { (try $0.setting("publicAddress"), try $0.setting("formerAddresses")) }
    return [current].compactMap { $0 } + (former ?? "").split(separator: " ").map(String.init)
  }
}

extension StoreTransaction {
  /// Forgets which account is the default where that one goes.
  func forgetDefault(_ account: AccountRow) throws {
    guard try setting(Library.defaultKey) == account.handle.description else { return }
    try setSetting(Library.defaultKey, nil as String?)
  }
}
