import SheafModel

/// The latest time in a library: new changes come after it, also if the clock was put back since.
///
/// While clocks go forward, the times of the rows at the beginning are enough. Once the clock was seen to be behind,
/// the setting `latestTime` tells the next process.
struct LatestTime {
  /// Nanoseconds by which the clock may be put back without a note: adjustments of a running clock.
  private static let slack: Int64 = 1_000_000_000

  private var time: Timestamp
  /// The time in the setting.
  private var noted: Timestamp

  init(_ time: Timestamp, noted: Timestamp) { (self.time, self.noted) = (max(time, noted), noted) }

  /// Notes the time of a change; returns what the setting is to say, where it does not and the clock is behind.
  mutating func note(_ change: Timestamp) -> Timestamp? {
    if change >= time {
      time = change
      return nil
    }
    guard time > noted, time.nanoseconds.subtractingReportingOverflow(change.nanoseconds).partialValue > Self.slack
    else { return nil }
    return time
  }

  /// Whether the clock was not put back since something that bears `moment`: what bears an earlier time came before.
  func isInOrder(since moment: Timestamp) -> Bool { moment > noted }

  mutating func noteRecorded(_ time: Timestamp) { noted = time }

  /// A time for what is done at `moment`: that, or the next one after all that the library bears.
  func following(_ moment: Timestamp) -> Timestamp {
    moment >= time ? moment : Timestamp(nanoseconds: time.nanoseconds == .max ? .max : time.nanoseconds + 1)
  }
}
