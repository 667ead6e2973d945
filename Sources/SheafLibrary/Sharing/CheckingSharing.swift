package import SheafModel
import SheafStore

/// What somebody asks a hub to do with a share.
package enum SharingRequest: Sendable {
  case change(ShareChange)
  case unshare
  case leave
  /// To invite somebody, or to change what they may do.
  case participant(ParticipantChange)
  case remove(AccountHandle)
  case oneTimeLink(SharePermission?)
  case accessRequests
}

extension Library {
  /// Refuses what a hub would refuse too, by what is known here. Its hub decides all the same, for it may know more.
  ///
  /// - Throws: What the same request about a share of this library throws, with the same advice.
  package func check(_ request: SharingRequest, at path: ItemPath) throws {
    try locked {
      let actor = try account(path.account).id
      let inode = try resolve(path)
      if case .change = request, let item = try item(of: inode), item.isQuiet, !inode.isFolder {
        throw SheafError(
          .notPermitted, subject: "\(path)",
          reason: "is ignored, or a temporary file, and such files stay on this machine",
          advice: "rename it, or share the folder it is in")
      }
      let known = try share(of: inode)
      if case .change = request, known == nil { try checkNesting(of: inode, path) }
      guard let share = known, let member = share.member(actor) else { return }
      switch request {
      case .change(let change):
        if change.changesShare { try require(.changeShare, in: share, actor, path) }
        for handle in change.with {
          try check(ParticipantChange(handle: handle, permission: change.permission), in: share, by: member, path)
        }
      case .unshare: try require(.unshare, in: share, actor, path)
      case .leave: try checkLeaving(member, share)
      case .participant(let change): try check(change, in: share, by: member, path)
      case .remove(let handle):
        if handle == path.account, member.role != .owner { return }
        try require(.managePeople, in: share, actor, path)
        if let target = try participant(handle, in: share) { try checkTarget(target, in: share, by: actor, path) }
      case .oneTimeLink(let permission): try checkOneTimeLink(permission, in: share, by: member, path)
      case .accessRequests: try require(.answerRequests, in: share, actor, path)
      }
    }
  }

  private func check(
    _ change: ParticipantChange, in share: ShareBook.Entry, by inviter: ParticipantRow, _ path: ItemPath
  ) throws {
    try checkInviting(in: share, by: inviter, path)
    if let there = try participant(change.handle, in: share), Self.allows(.listEveryone, inviter) {
      guard there.role == .publicUser || change.permission != nil || change.role != nil else { return }
      try checkAltering(there, permission: change.permission, role: change.role, in: share, by: inviter.account, path)
    } else {
      try checkInvitation(change.permission, change.role, isBlocked: false, in: share, by: inviter, path)
    }
  }

  /// Somebody who takes part in a share, or is invited.
  private func participant(_ handle: AccountHandle, in share: ShareBook.Entry) throws -> ParticipantRow? {
    try share.participants.values.first { try $0.acceptance != .removed && self.handle($0.account) == handle }
  }
}
