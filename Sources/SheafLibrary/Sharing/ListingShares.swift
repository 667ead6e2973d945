package import SheafModel
import SheafStore

/// All that an account shares with others and others with it, in one list.
extension Library {
  /// Shares that are looked at before others use the library in between.
  private static let listedShares = 16

  /// The shares of an account, those that it joined or is invited to, and the people who ask it for access.
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
    invitations += try self.invitations(of: number(of: handle))
    return try AccountShares(
      byMe: byMe.sorted { $0.path < $1.path }, withMe: withMe.sorted { $0.path < $1.path },
      invitations: invitations.sorted { $0.since > $1.since }, requests: AccessRequest.inOrder(requests),
      transfers: transfers(of: handle))
  }

  private func listed(_ share: ShareBook.Entry, _ inode: Inode, _ participant: ParticipantRow) throws -> AccountShare {
    AccountShare(
      path: try mountPath(inode, for: participant.account), kind: inode.isFolder ? "folder" : "document",
      title: share.row.title, owner: try handle(share.owner), url: try url(of: share.row), role: participant.role,
      permission: participant.permission, public: share.row.anyone, expires: try linkEnd(of: share),
      summary: summary(of: share, for: participant.account),
      people: Self.allows(.listEveryone, participant) ? share.members.count - 1 : nil, since: participant.since)
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
