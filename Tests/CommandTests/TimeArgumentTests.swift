import Glibc
import SheafModel
import Testing

@testable import SheafCommand

/// Times as people write them.
@Suite(.serialized) struct TimeArgumentTests {
  /// Runs `body` where clocks go as in the middle of Europe.
  private func inBerlin(_ body: () -> Void) {
    let former = getenv("TZ").map { String(cString: $0) }
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1)
    tzset()
    defer {
      if let former { setenv("TZ", former, 1) } else { unsetenv("TZ") }
      tzset()
    }
    body()
  }

  /// Why a text is refused; nil if it is read.
  private func refusal(of text: String) -> SheafError.Kind? {
    do throws(SheafError) {
      _ = try TimeArgument(text)
      return nil
    } catch {
      return error.kind
    }
  }

  @Test func momentsAreReadAsWritten() {
    inBerlin {
      for (text, time) in [
        ("2026-11-17T18:00:00Z", "2026-11-17T18:00:00.999999999Z"),
        ("2026-11-17t18:00:00z", "2026-11-17T18:00:00.999999999Z"),
        ("2026-11-17T18:00:00.25Z", "2026-11-17T18:00:00.25Z"),
        ("2026-11-17T18:00:00+05:30", "2026-11-17T12:30:00.999999999Z"),
        ("2026-11-17T18:00:00-01:00", "2026-11-17T19:00:00.999999999Z"),
        ("2026-11-17 18:00", "2026-11-17T17:00:00.999999999Z"),
        ("2026-07-17 18:00:05", "2026-07-17T16:00:05.999999999Z"),
        ("2026-11-17T18:00", "2026-11-17T17:00:00.999999999Z"),
        ("@2026-11-17T18-00-00Z", "2026-11-17T18:00:00.999999999Z"),
        ("2026-11-17T18-00-00Z", "2026-11-17T18:00:00.999999999Z"),
        ("2026-10-25 01:59", "2026-10-24T23:59:00.999999999Z"),
        ("2026-10-25 03:00", "2026-10-25T02:00:00.999999999Z"),
      ] {
        let read = try? TimeArgument(text).time
        #expect(read != nil && read == Timestamp(rfc3339: time), "\(text)")
      }
    }
  }

  /// A day alone is its beginning where an option says from when on, and is refused where it might mean its end.
  @Test func aDayIsItsBeginning() {
    inBerlin {
      let read = try? TimeArgument("2026-11-17", of: "--since", beginsDays: true).start
      #expect(read != nil && read == Timestamp(rfc3339: "2026-11-16T23:00:00Z"))
      for day in ["yesterday", "Tuesday"] {
        let times = (0..<3).map { _ in
          (try? TimeArgument(day, beginsDays: true).start, try? TimeArgument("\(day) 00:00").start)
        }
        #expect(times.contains { $0.0 != nil && $0.0 == $0.1 }, "\(day)")
      }
      for day in ["2026-11-17", "yesterday", "tuesday"] { #expect(refusal(of: day) == .invalid, "\(day)") }
      #expect((try? TimeArgument("2026-13-17", beginsDays: true)) == nil)
    }
  }

  /// The clock may strike between two looks at it.
  @Test func daysHaveNames() {
    inBerlin {
      func date(_ back: Int64, _ clock: String) -> String {
        var time = time_t(Timestamp.now.seconds)
        var fields = tm()
        localtime_r(&time, &fields)
        (fields.tm_mday, fields.tm_hour) = (fields.tm_mday - CInt(back), 12)
        mktime(&fields)
        let month = "0\(fields.tm_mon + 1)".suffix(2)
        let day = "0\(fields.tm_mday)".suffix(2)
        return "\(fields.tm_year + 1900)-\(month)-\(day) \(clock)"
      }
      func same(_ text: String, _ other: () -> String) {
        let times = (0..<3).map { _ in (try? TimeArgument(text).time, try? TimeArgument(other()).time) }
        #expect(times.contains { $0.0 != nil && $0.0 == $0.1 }, "\(text)")
      }
      same("09:30") { date(0, "09:30") }
      same("today 09:30:05") { date(0, "09:30:05") }
      same("Yesterday 18:00") { date(1, "18:00") }
      let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
      var (now, fields) = (time_t(Timestamp.now.seconds), tm())
      localtime_r(&now, &fields)
      for back in 1...7 { same("\(days[(Int(fields.tm_wday) + 7 - back) % 7]) 18:00") { date(Int64(back), "18:00") } }
      let ago = (try? TimeArgument("2h").time).map { Timestamp.now.seconds - $0.seconds }
      #expect(ago.map { (7_200...7_260).contains($0) } ?? false)
    }
  }

  @Test func whatIsNoMomentIsRefused() {
    inBerlin {
      for text in [
        "", "now", "yesterday", "2026-11-17", "tuesday", "someday 18:00", "yesterday 24:00", "h", "-2h",
        "2026-11-17 6pm", "2026-02-30 18:00", "2026-11-17 25:00",
        "2026-11-17 18:00:00.5", "17.11.2026 18:00", "2026-11-17T18:00:00+24:00", "2026-11-17T18:00:00+0100", "é@é",
        "2026-10-25 02:30", "2026-03-29 02:30",
      ] {
        #expect(refusal(of: text) == .invalid, "\(text)")
      }
    }
  }
}
