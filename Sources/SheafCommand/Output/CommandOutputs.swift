import SheafModel

/// The JSON output of a command on one item.
struct ItemOutput: Encodable {
  /// The item's path, as it was given.
  let path: String
}

/// The JSON output of `purge`.
struct PurgeOutput: Encodable {
  /// The path, as it was given; nil for all of the account's trash.
  @OrNull var path: String?
  /// The version, if only one was purged.
  @OrNull var version: Int64?
  /// How many items lay in the folder, nil if they were not counted; with `--deleted` how many were destroyed.
  @OrNull var items: Int?
  /// With `--deleted`, the bytes of the documents that were destroyed.
  @OrNull var bytes: Int64?
}

/// The JSON output of `unshare`.
struct UnshareOutput: Encodable {
  let path: String
  /// The people who lost access.
  let participants: [AccountHandle]
}

/// The answer to a request for access.
struct AnswerOutput: Encodable {
  let path: String
  let handle: AccountHandle
  let answer: RequestAnswer.Answer
}

/// An element of the JSON output of `account list`.
struct ListedAccount: Encodable {
  let handle: AccountHandle
  let name: String
  /// Whether it acts where no other account is named.
  let isDefault: Bool
  /// Whether it is connected to a hub.
  let isConnected: Bool
}

/// The JSON output of `leave`.
struct LeaveOutput: Encodable {
  /// The path or the link, as it was given.
  let path: String
  /// What became of a link; nil for an entry that was left.
  @OrNull var declined: DeclinedLink.Kind?
  /// Of what a declined invitation was to.
  @OrNull var title: String?
}

/// The JSON output of `send-copy`.
struct CopyOutput: Encodable {
  let path: String
  let destination: String
}

/// The JSON output of `resolve`.
struct ResolveOutput: Encodable {
  let path: String
  /// The version that was passed over; nil if there was no conflict.
  @OrNull var conflict: Int64?
}

/// The JSON output of `invite --revoke`.
struct RevokedOutput: Encodable {
  let path: String
  /// How many links were revoked; nil where a hub with an older program does not say.
  @OrNull var revoked: Int?
}

/// The JSON output of `unmount`.
struct UnmountOutput: Encodable {
  let mountpoint: String
}

/// The JSON output of `participant remove`.
struct MemberOutput: Encodable {
  let path: String
  let handle: AccountHandle
}

/// The JSON output of `device remove`.
struct RemovedDeviceOutput: Encodable {
  let id: String
  let name: String
  let wipes: Bool
}
