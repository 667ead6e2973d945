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

  @Test func whatIsNoMomentIsRefused() {
    inBerlin {
      for text in [
        "", "now", "yesterday", "2026-11-17", "18:00", "2026-11-17 6pm", "2026-02-30 18:00", "2026-11-17 25:00",
        "2026-11-17 18:00:00.5", "17.11.2026 18:00", "2026-11-17T18:00:00+24:00", "2026-11-17T18:00:00+0100", "é@é",
        "2026-10-25 02:30", "2026-03-29 02:30",
      ] {
        #expect(refusal(of: text) == .invalid, "\(text)")
      }
    }
  }
}
