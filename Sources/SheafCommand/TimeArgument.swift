import Glibc
import SheafModel

/// A moment as people write it, unambiguous or refused.
///
/// - `2026-11-17T18:00:00Z`, `2026-11-17T18:00:00.25+01:00`: RFC 3339.
/// - `2026-11-17 18:00`, `2026-11-17 18:00:05`: local time. So are `18:00` of today, `yesterday 18:00` and
///   `tuesday 18:00`, which is of the last Tuesday before today.
/// - `2h`, `3d`: so long ago.
/// - `@2026-11-17T18-00-00Z`, with or without the `@`: a name of `.versions/`.
///
/// - `2026-11-17`, `yesterday`, `tuesday`: the beginning of that day, for options that say from when on.
///
/// A moment without decimals counts to the end of its second, as a name of `.versions/` does.
struct TimeArgument {
  let time: Timestamp

  /// The beginning of what was meant, for what counts from then on.
  var start: Timestamp { time.subsecondNanoseconds == 999_999_999 ? Timestamp(seconds: time.seconds) : time }

  /// - Parameters:
  ///   - option: The option whose value it is.
  ///   - beginsDays: whether a day may stand for its beginning. It is refused otherwise: it might be meant to its end.
  /// - Throws: ``SheafError`` of kind `invalid` that says what to write instead.
  init(_ text: String, of option: String = "--time", beginsDays: Bool = false) throws(SheafError) {
    var plain = text.hasPrefix("@") ? String(text.dropFirst()) : text
    if beginsDays, Self.isDay(plain) { plain += " 00:00" }
    if let span = SpanArgument(argument: text) {
      self.time = Self.end(of: Timestamp(seconds: Timestamp.now.seconds - span.seconds))
    } else if let time = Timestamp(nameText: plain) {
      self.time = Self.end(of: time)
    } else if let time = Self.absolute(plain) {
      self.time = plain.contains(".") ? time : Self.end(of: time)
    } else if let time = try Self.local(Self.dated(plain), as: "\(option) \(text.printable)") {
      self.time = Self.end(of: time)
    } else {
      throw SheafError(
        .invalid, subject: "\(option) \(text.printable)",
        reason: Self.isDay(plain) ? "is a day without a time of day" : "is no time",
        advice: "write '2026-11-17 18:00', 'tuesday 18:00' or 18:00 for local time, 2026-11-17T18:00:00Z, "
          + "or a span: 2h, 3d")
    }
  }

  private static func isDay(_ text: String) -> Bool {
    Timestamp(rfc3339: "\(text)T00:00:00Z") != nil || (weekdays + ["today", "yesterday"]).contains(text.lowercased())
  }

  private static let weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]

  /// A time of day of a day that has a name, or of today, with the date of that day; any other text as it is.
  private static func dated(_ text: String) -> String {
    let parts = text.split(separator: " ")
    guard let clock = parts.last, clock.utf8.count == 5 || clock.utf8.count == 8, clock.contains(":"), parts.count <= 2
    else { return text }
    var now = time_t(Timestamp.now.seconds)
    var day = tm()
    localtime_r(&now, &day)
    let back: CInt
    switch parts.count == 1 ? "today" : parts[0].lowercased() {
    case "today": back = 0
    case "yesterday": back = 1
    case let word:
      guard let weekday = weekdays.firstIndex(of: word) else { return text }
      let days = (day.tm_wday - CInt(weekday) + 7) % 7
      back = days == 0 ? 7 : days
    }
    day.tm_mday -= back
    // Noon is there on each day, however clocks are changed.
    (day.tm_hour, day.tm_min, day.tm_sec, day.tm_isdst) = (12, 0, 0, -1)
    mktime(&day)
    func digits(_ number: CInt) -> String { (number < 10 ? "0" : "") + "\(number)" }
    return "\(day.tm_year + 1900)-\(digits(day.tm_mon + 1))-\(digits(day.tm_mday)) \(clock)"
  }

  private static func end(of time: Timestamp) -> Timestamp {
    Timestamp(seconds: time.seconds, nanoseconds: 999_999_999)
  }

  /// RFC 3339 with `Z` or an offset; nil for anything else.
  private static func absolute(_ text: String) -> Timestamp? {
    if let time = Timestamp(rfc3339: text.uppercased()) { return time }
    let bytes = Array(text.utf8)
    guard bytes.count > 6 else { return nil }
    let (head, offset) = (bytes.dropLast(6), Array(bytes.suffix(6)))
    guard let sign = offset.first, [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(sign),
      offset[3] == UInt8(ascii: ":"),
      let hours = Int64(String(decoding: offset[1..<3], as: UTF8.self)), hours < 24,
      let minutes = Int64(String(decoding: offset[4..<6], as: UTF8.self)), minutes < 60,
      let time = Timestamp(rfc3339: String(decoding: head, as: UTF8.self).uppercased() + "Z")
    else { return nil }
    let seconds = (hours * 60 + minutes) * 60
    return Timestamp(
      seconds: time.seconds - (sign == UInt8(ascii: "-") ? -seconds : seconds),
      nanoseconds: time.subsecondNanoseconds)
  }

  /// A date and a time of day where the person is; nil for anything else.
  ///
  /// - Throws: `invalid` for one that was there twice or never, as when clocks are changed.
  private static func local(_ text: String, as given: String) throws(SheafError) -> Timestamp? {
    let parts = text.split(whereSeparator: { $0 == " " || $0 == "T" })
    guard parts.count == 2, parts[1].utf8.count == 5 || parts[1].utf8.count == 8 else { return nil }
    let clock = parts[1].utf8.count == 5 ? parts[1] + ":00" : parts[1]
    // Whether day and time exist at all, this says.
    guard let read = Timestamp(rfc3339: "\(parts[0])T\(clock)Z") else { return nil }
    var wanted = tm()
    var seconds = time_t(read.seconds)
    gmtime_r(&seconds, &wanted)
    var found: Set<time_t> = []
    for summer: CInt in [0, 1] {
      var fields = wanted
      fields.tm_isdst = summer
      let moment = mktime(&fields)
      if fields.tm_isdst == summer, fields.tm_hour == wanted.tm_hour, fields.tm_min == wanted.tm_min {
        found.insert(moment)
      }
    }
    guard found.count == 1, let moment = found.first else {
      throw SheafError(
        .invalid, subject: given,
        reason: found.isEmpty
          ? "did not exist: the clocks were put forward" : "was there twice: the clocks were put back",
        advice: "write it with its offset, such as 2026-10-25T02:30:00+01:00")
    }
    return Timestamp(seconds: Int64(moment))
  }
}
