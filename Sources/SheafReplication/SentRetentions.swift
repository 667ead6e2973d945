import SheafHubClient
import SheafLibrary
import SheafWire
import Synchronization

/// What a machine knows of the spans for which folders of its account keep things at the hub.
struct SentRetentions: Sendable {
  /// Whether a page of the feed was read since this began, and the mark that the last one had; none of an older hub.
  var isAsked = false
  var told: String?
  /// The mark of what the library knows; nil if it is to be asked for.
  var noted: String?
  /// Whether folders are not here of which the hub told.
  var lacksFolders = false
  /// What the hub refused of folders.
  var refused: [WireID: FolderRetention] = [:]
}

/// For how long folders keep things: the hub is told what was said here, and tells what was said elsewhere.
extension ReplicaEngine {
  /// Notes whether a page of the feed tells that folders say something else than is known.
  func noteRetentions(_ page: FeedPage) {
    retentions.withLock { known in
      (known.isAsked, known.told) = (true, page.retentions)
      // A folder may have come.
      if known.lacksFolders, !page.items.isEmpty { known.noted = nil }
    }
  }

  /// Tells the hub what it does not know, and takes over what is not known here.
  ///
  /// - Returns: whether anything was done.
  func alignRetentions() async throws -> Bool {
    guard case .zone = subject else { return false }
    let (isAsked, told) = retentions.withLock { ($0.isAsked, $0.told) }
    guard isAsked else { return false }
    guard let told else {
      try await call { try $0.noteOlderHub(of: $1) }
      return false
    }
    var isSent = false
    let waiting = try await call { try $0.waitingRetentions(of: $1) }
    for folder in waiting where retentions.withLock({ $0.refused[folder.item] != folder }) {
      if try await retain(folder) { isSent = true }
    }
    if isSent {
      readFeedAgain()
      return true
    }
    guard retentions.withLock({ $0.noted != told }) else { return false }
    let list = try await client.retentions()
    let isWhole = try await call { try $0.noteRetentions(list, of: $1) }
    // Whatever it tells more than the page did, the next page says so.
    retentions.withLock { ($0.noted, $0.lacksFolders) = (told, !isWhole) }
    return true
  }

  /// Tells the hub what a folder says.
  ///
  /// - Returns: whether it took that.
  private func retain(_ folder: FolderRetention) async throws -> Bool {
    do {
      try await client.retain(folder)
    } catch let failure as HubFailure {
      switch failure.kind {
      case .refused(.notFound): break  // The feed tells what became of the folder.
      case .refused(.conflict), .refused(.invalid), .refused(.forbidden), .refused(.method):
        tell(
          ItemNotice(
            item: folder.item, text: "the hub does not take for how long the folder keeps things: \(failure)"))
      default: throw failure
      }
      retentions.withLock { $0.refused[folder.item] = folder }
      return false
    }
    retentions.withLock { $0.refused[folder.item] = nil }
    try await call { try $0.noteSent(folder, of: $1) }
    return true
  }
}
