import SheafHubClient
import SheafLibrary
package import SheafModel
import SheafWire

/// Items of connected accounts that go to other accounts of their hub. The hub gives them away (docs/HUB.md, "Items that
/// go to another account"), and what came of it is fetched like any other change.
extension HubSharing {
  /// Requests that one acceptance makes. Each does something, for some seconds, unless others keep changing the item.
  private static let requests = 1_000

  /// As ``asked(_:)``, with the words for what cannot be given away.
  private func askedOfTransfer<Value>(_ subject: String, _ body: () async throws -> Value) async throws -> Value {
    try await asked {
      do {
        return try await body()
      } catch let failure as HubFailure {
        switch failure.kind {
        case .refused(.conflict), .refused(.tooLarge):
          let isLarge = failure.kind == .refused(.tooLarge)
          throw SheafError(
            isLarge ? .tooLarge : .notPermitted, subject: subject,
            reason: "cannot be given away at \(failure.hub): \(failure.reason)",
            advice: isLarge ? "transfer the folders in it one by one" : nil)
        default: throw failure
        }
      }
    }
  }

  func offerTransfer(_ path: ItemPath, to handle: AccountHandle) async throws -> TransferOffer {
    try await askedOfTransfer("\(path)") {
      try await shares.call { library, _ in try library.checkTransfer(path, to: handle) }
      guard case .item(let item, _, _) = try await facts(of: path) else {
        throw SheafError(
          .notPermitted, subject: "\(path)",
          reason: "is shared at \(shares.own.hub), and what is shared cannot be given away there",
          advice: "end that first: sheaf unshare \(path.description.shellWord)")
      }
      do {
        return try await offer(try await client.offer(item, to: handle))
      } catch let failure as HubFailure
        where failure.kind == .refused(.notFound) && failure.reason.hasPrefix("handle")
      {
        throw SheafError(
          .notFound, subject: "\(handle)", reason: "has no account at \(failure.hub)",
          advice: "make a copy for them: sheaf send-copy")
      }
    }
  }

  /// - Returns: false where the hub has no such offer.
  func withdrawTransfer(_ path: ItemPath) async throws -> Bool {
    try await askedOfTransfer("\(path)") {
      let known = try await shares.call { library, _ in try library.hubShare(of: path) }
      guard case .item(let item, _, _) = known else { return false }
      do {
        try await client.withdraw(item)
        return true
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
        return false
      }
    }
  }

  func transfers() async throws -> TransferList {
    try await asked {
      let lists = try await client.transfers()
      var (byMe, toMe): ([TransferOffer], [TransferOffer]) = ([], [])
      for facts in lists.byMe { byMe.append(try await offer(facts)) }
      for facts in lists.toMe { toMe.append(try await offer(facts)) }
      return TransferList(byMe: byMe, toMe: toMe)
    }
  }

  private func offer(_ facts: TransferFacts) async throws -> TransferOffer {
    guard let owner = try? AccountHandle(facts.owner), let recipient = try? AccountHandle(facts.recipient),
      let time = Timestamp(rfc3339: facts.time)
    else { throw SheafError(.inputOutput, subject: "the offer") }
    let account = shares.own.account
    var path: String?
    if let item = facts.item {
      path = try await shares.call { library, _ in
        try? library.path(ofItem: item.description, for: account, isExact: false).description
      }
    }
    return TransferOffer(
      id: facts.transfer.description, name: facts.name, kind: facts.kind == .folder ? "folder" : "document", path: path,
      owner: owner, ownerName: facts.ownerName, recipient: recipient, recipientName: facts.recipientName, time: time)
  }

  /// - Returns: nil where the hub has no such offer.
  func acceptTransfer(_ id: WireID) async throws -> AcceptResult? {
    try await askedOfTransfer("id:\(id)") {
      var item: WireID?
      do {
        for _ in 0..<Self.requests where item == nil {
          let progress = try await client.acceptTransfer(id)
          if progress.isDone { item = progress.item }
        }
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
        return nil
      }
      guard let item else {
        throw SheafError(
          .busy, subject: "id:\(id)", reason: "others keep changing what is in it", advice: "try again in a moment")
      }
      let account = shares.own.account
      shares.own.wake()
      let path: String? = try await waited { library, _ in
        try? library.path(ofItem: item.description, for: account, isExact: true).description
      }
      return AcceptResult(
        path: path, title: nil, owner: account, permission: .readWrite, requested: false)
    }
  }

  /// - Returns: false where the hub has no such offer.
  func declineTransfer(_ id: WireID) async throws -> Bool {
    try await asked {
      do {
        try await client.decline(id)
        return true
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
        return false
      }
    }
  }
}

/// Which offers are a hub's affair.
extension LibraryConnections {
  package func offerTransfer(_ path: ItemPath, to handle: AccountHandle) async throws -> TransferOffer? {
    guard let shares = try connected(path.account) else { return nil }
    return try await HubSharing(shares).offerTransfer(path, to: handle)
  }

  package func withdrawTransfer(_ path: ItemPath) async throws -> Bool {
    guard let shares = try connected(path.account) else { return false }
    return try await HubSharing(shares).withdrawTransfer(path)
  }

  package func transfers(of account: AccountHandle, within limit: Duration) async throws -> TransferList {
    try await asked(account, within: limit) { try await HubSharing($0).transfers() } ?? .none
  }

  package func acceptTransfer(_ id: String, as account: AccountHandle) async throws -> AcceptResult? {
    guard let id = WireID(id), let shares = try connected(account) else { return nil }
    return try await HubSharing(shares).acceptTransfer(id)
  }

  package func declineTransfer(_ id: String, as account: AccountHandle) async throws -> Bool {
    guard let id = WireID(id), let shares = try connected(account) else { return false }
    return try await HubSharing(shares).declineTransfer(id)
  }
}
