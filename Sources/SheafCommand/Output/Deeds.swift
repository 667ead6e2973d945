import SheafModel

/// The deed of a command on one item, as JSON.
struct ItemDeed: Encodable {
  /// The item's path, as it was given.
  let path: String
}

/// The deed of `purge`.
struct PurgeDeed: Encodable {
  let path: String
  /// The version, if only one was purged.
  @OrNull var version: Int64?
  /// How many items lay in the folder; nil if they were not counted.
  @OrNull var items: Int?
}

/// The deed of `unshare`.
struct UnshareDeed: Encodable {
  let path: String
  /// The people who lost access.
  let participants: [AccountHandle]
}

/// The answer to a request for access.
struct AnswerDeed: Encodable {
  let path: String
  let handle: AccountHandle
  let answer: RequestAnswer.Answer
}

/// The deed of `send-copy`.
struct CopyDeed: Encodable {
  let path: String
  let destination: String
}

/// The deed of `resolve`.
struct ResolveDeed: Encodable {
  let path: String
  /// The version that was passed over; nil if there was no conflict.
  @OrNull var conflict: Int64?
}

/// The deed of `unmount`.
struct UnmountDeed: Encodable {
  let mountpoint: String
}

/// The deed of `participant remove`.
struct MemberDeed: Encodable {
  let path: String
  let handle: AccountHandle
}
