import SheafModel

/// What a command did to one item, as JSON.
struct ItemDeed: Encodable {
  /// The item's path, as it was given.
  let path: String
}

/// What `purge` destroyed.
struct PurgeDeed: Encodable {
  let path: String
  /// The version, where it was one alone.
  @OrNull var version: Int64?
  /// How much lay in the folder; nil where that was not counted.
  @OrNull var items: Int?
}

/// What `unshare` ended.
struct UnshareDeed: Encodable {
  let path: String
  /// Those who lost access.
  let participants: [AccountHandle]
}

/// How someone was answered who asked for access.
struct AnswerDeed: Encodable {
  let path: String
  let handle: AccountHandle
  let answer: RequestAnswer.Answer
}

/// What `send-copy` made.
struct CopyDeed: Encodable {
  let path: String
  let destination: String
}

/// What `resolve` dismissed.
struct ResolveDeed: Encodable {
  let path: String
  /// The version that was passed over; nil where there was no conflict.
  @OrNull var conflict: Int64?
}

/// Which mount `unmount` took away.
struct UnmountDeed: Encodable {
  let mountpoint: String
}

/// Whom `participant remove` took out.
struct MemberDeed: Encodable {
  let path: String
  let handle: AccountHandle
}
