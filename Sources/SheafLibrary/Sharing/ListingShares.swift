package import SheafModel
import SheafStore

/// All that an account shares with others and others with it, in one list.
///
/// Rooms: `ShareBook`.
extension Library {
  /// Shares that are looked at before others use the library in between.
  private static let listedShares = 16

  /// The shares of an account, those that it joined or is invited to, the people who ask it for access, and what it
  /// asks others for.
  ///
  /// Changes made while the list is made are in it or not.
  ///
  /// - Throws: `notFound` for an account that is not there.
  package func shares(of handle: AccountHandle) throws -> AccountShares {
    let items = try locked {
      let account = try account(handle).id
      return shares.owned(by: account).map(\.row.item) + shares.joined(by: account).map(\.row.item)
        + shares.pending(for: account).map(\.row.item)
    }
    var byMe: [AccountShare] = []
    var withMe: [AccountShare] = []
    var invitations: [ShareInvitation] = []
    var requests: [AccessRequest] = []
    for start in stride(from: 0, to: items.count, by: Self.listedShares) {
      try locked {
        let account = try account(handle).id
        for item in items[start..<min(start + Self.listedShares, items.count)] {
          guard let share = shares.active(item), let participant = share.participants[account],
            let inode = try sharedInode(item), inode.row.nlink > 0
          else { continue }
          switch participant.acceptance {
          case .pending: invitations.append(try invitation(to: share, inode, participant))
          case .accepted:
            let fact = try listed(share, inode, participant)
            if participant.role == .owner { byMe.append(fact) } else { withMe.append(fact) }
            if Self.allows(.answerRequests, participant) {
              requests += try accessRequests(of: share, inode, for: account)
            }
          case .removed: continue
          }
        }
      }
    }
    let number = try number(of: handle)
    invitations += try self.invitations(of: number)
    let ownRequests = try requestsHere(by: number) + requestsAtHub(by: number)
    return try AccountShares(
      byMe: byMe.sorted { $0.path < $1.path }, withMe: withMe.sorted { $0.path < $1.path },
      invitations: invitations.sorted { $0.since > $1.since }, requests: AccessRequest.inOrder(requests),
      ownRequests: ownRequests.sorted { $0.time > $1.time }, transfers: transfers(of: handle))
  }

  private func listed(_ share: ShareBook.Entry, _ inode: Inode, _ participant: ParticipantRow) throws -> AccountShare {
    AccountShare(
      path: try mountPath(inode, for: participant.account), kind: inode.isFolder ? "folder" : "document",
      title: share.row.title, owner: try handle(share.owner), url: try url(of: share.row), role: participant.role,
      permission: participant.permission, public: share.row.anyone, expires: try linkEnd(of: share),
      summary: summary(of: share, for: participant.account),
      people: Self.allows(.listEveryone, participant) ? share.members.count - 1 : nil,
      invited: Self.allows(.listEveryone, participant)
        ? share.participants.values.count { $0.acceptance == .pending } : nil, since: participant.since)
  }

  /// What an account asks for of other people of this library.
  private func requestsHere(by account: Int64) throws -> [OwnRequest] {
    try locked {
      try read { try $0.accessRequests(by: account) }.compactMap { request in
        guard let share = shares.active(request.share), let inode = try sharedInode(request.share) else { return nil }
        return OwnRequest(
          title: share.row.title, kind: inode.isFolder ? "folder" : "document", owner: try handle(share.owner),
          ownerName: try name(share.owner), time: request.time)
      }
    }
  }

  private func invitation(
    to share: ShareBook.Entry, _ inode: Inode, _ participant: ParticipantRow
  ) throws -> ShareInvitation {
    ShareInvitation(
      title: share.row.title, kind: inode.isFolder ? "folder" : "document", owner: try handle(share.owner),
      ownerName: try name(share.owner), permission: participant.permission, url: try url(of: share.row),
      since: participant.since, warnings: try warnings(of: share))
  }
}
