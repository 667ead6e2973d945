/// The operations on a share, and on the items in it, that depend on a participant's standing.
///
/// Each stands for many operations of the doors: `write` is write(2), truncate(2), chmod(2), setxattr(2) and so on.
package enum ShareOperation: String, Sendable, CaseIterable {
  /// Names, attributes and contents.
  case read
  /// Versions, comments and activity.
  case readHistory
  /// Contents and attributes.
  case write
  case create
  /// Below the shared item.
  case rename
  /// Below the shared item.
  case delete
  /// Items that were deleted from the share.
  case recover
  /// An earlier version.
  case restore
  /// A version.
  case label
  case comment
  /// Dismissing a conflict.
  case resolve
  /// The participants.
  case listPeople
  /// All of them: a public user sees only the owner and themselves.
  case listEveryone
  /// Adding, changing and removing people, also by one-time links.
  case managePeople
  /// Approving, denying and blocking people who ask.
  case answerRequests
  /// The public permission, title, options and token.
  case changeShare
  /// Making others administrators, and changing administrators.
  case manageAdministrators
  case unshare
  case purge
  case leave
  /// An invitation.
  case accept
}

/// The one table of permissions.
///
/// It leaves two things to options of the share: participants may invite if the share allows it, with no more than they
/// may do themselves, and anyone may accept if the public permission or a one-time link says so.
package enum ShareRules {
  /// Whether someone of this standing may do `operation`; permission counts for private and public users alone.
  package static func allows(
    _ operation: ShareOperation, role: Role, permission: SharePermission, acceptance: Acceptance
  ) -> Bool {
    switch acceptance {
    case .removed: return false
    case .pending: return operation == .accept && role != .owner
    case .accepted: break
    }
    let writes = role == .owner || role == .administrator || permission == .readWrite
    switch operation {
    case .read, .readHistory, .listPeople: return true
    case .listEveryone: return role != .publicUser
    case .write, .create, .rename, .delete, .recover, .restore, .label, .comment, .resolve: return writes
    case .managePeople, .answerRequests: return role == .owner || role == .administrator
    case .changeShare, .manageAdministrators, .unshare, .purge: return role == .owner
    case .leave: return role != .owner
    case .accept: return false
    }
  }
}
