/// A moment as nanoseconds since 1970-01-01T00:00:00Z, as `struct timespec` counts them; negative before.
package struct Timestamp: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  package var nanoseconds: Int64

  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Whole seconds and the nanoseconds past them (0 ..< 1,000,000,000); saturates outside the years 1677 to 2262.
  package init(seconds: Int64, nanoseconds: Int64 = 0) {
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflowAgain) = product.addingReportingOverflow(nanoseconds)
    self.nanoseconds = overflow || overflowAgain ? (seconds < 0 ? .min : .max) : sum
  }

  package var seconds: Int64 { floorSeconds }
  package var subsecondNanoseconds: Int64 {
    // Not the remainder of `floorSeconds`: the first second began before the earliest moment.
    let remainder = nanoseconds % 1_000_000_000
    return remainder < 0 ? remainder + 1_000_000_000 : remainder
  }

  private var floorSeconds: Int64 { Self.floorDivide(nanoseconds, 1_000_000_000) }

  package static func < (left: Timestamp, right: Timestamp) -> Bool { left.nanoseconds < right.nanoseconds }

  /// RFC 3339 in UTC with nine decimals, such as `2026-11-21T10:32:05.000000000Z`.
  package var description: String { text(separator: ":", decimals: 9) }

  /// The form in names of `.versions/`: `2026-11-21T10-32-05Z`.
  package var nameText: String { text(separator: "-", decimals: 0) }

  /// Parses the form of ``nameText``; nil for anything else.
  package init?(nameText text: String) {
    var bytes = Array(text.utf8)
    guard bytes.count == 20 else { return nil }
    for index in [13, 16] {
      guard bytes[index] == UInt8(ascii: "-") else { return nil }
      bytes[index] = UInt8(ascii: ":")
    }
    self.init(rfc3339: String(decoding: bytes, as: UTF8.self))
  }

  /// RFC 3339 in UTC with whole seconds.
  package var secondsText: String { text(separator: ":", decimals: 0) }

  private func text(separator: String, decimals: Int) -> String {
    let (year, month, day) = Self.civil(daysSinceEpoch: Self.floorDivide(floorSeconds, 86_400))
    let second = floorSeconds - Self.floorDivide(floorSeconds, 86_400) * 86_400
    func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
    var yearText = "\(year)"
    while yearText.count < 4 { yearText = "0" + yearText }
    var result = "\(yearText)-\(two(month))-\(two(day))T"
    result += two(second / 3600) + separator + two(second / 60 % 60) + separator + two(second % 60)
    if decimals > 0 {
      var fraction = "\(subsecondNanoseconds)"
      while fraction.count < 9 { fraction = "0" + fraction }
      result += "." + fraction.prefix(decimals)
    }
    return result + "Z"
  }

  private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
    value / divisor - (value % divisor < 0 ? 1 : 0)
  }

  /// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
  private static func civil(daysSinceEpoch: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = daysSinceEpoch + 719_468
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }

  package init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let parsed = Timestamp(rfc3339: text) else {
      throw SheafError(.invalid, subject: text.printable, reason: "is not an RFC 3339 time")
    }
    self = parsed
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }

  /// Parses RFC 3339 in UTC (`Z`), with 0 to 9 decimals; nil for anything else.
  package init?(rfc3339 text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z"), bytes[10] == UInt8(ascii: "T"),
      [4, 7].allSatisfy({ bytes[$0] == UInt8(ascii: "-") }), [13, 16].allSatisfy({ bytes[$0] == UInt8(ascii: ":") })
    else { return nil }
    func number(_ range: Range<Int>) -> Int64? {
      var value: Int64 = 0
      for byte in bytes[range] {
        guard byte >= 48, byte <= 57 else { return nil }
        value = value * 10 + Int64(byte - 48)
      }
      return value
    }
    guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
      let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month), (1...31).contains(day),
      hour < 24, minute < 60, second < 61
    else { return nil }
    var fraction: Int64 = 0
    if bytes.count > 20 {
      let digits = bytes.count - 21
      guard bytes[19] == UInt8(ascii: "."), (1...9).contains(digits), let value = number(20..<(20 + digits)) else {
        return nil
      }
      fraction = (digits..<9).reduce(value) { result, _ in result * 10 }
    }
    let adjusted = month <= 2 ? year - 1 : year
    let era = Self.floorDivide(adjusted, 400)
    let yearOfEra = adjusted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    // A day that its month does not have falls into the next month.
    guard Self.civil(daysSinceEpoch: days) == (year, month, day) else { return nil }
    self.init(seconds: days * 86_400 + hour * 3600 + minute * 60 + second, nanoseconds: fraction)
  }
}
