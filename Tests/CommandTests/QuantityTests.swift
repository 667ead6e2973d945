import Testing

@testable import SheafCommand

/// Spans and sizes as commands take them.
struct QuantityTests {
  @Test func spansHaveAUnit() {
    let spans = [("90s", 90), ("15m", 900), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600), ("1y", 31_536_000)]
    for (text, seconds) in spans { #expect(SpanArgument(argument: text)?.seconds == Int64(seconds), "\(text)") }
    for text in ["", "7", "d", "-1d", "1.5d", "7 d", "7D", "٧d", "99999999999999999999d", "9223372036854775807y"] {
      #expect(SpanArgument(argument: text) == nil, "\(text)")
    }
  }

  @Test func sizesAreBytesOrPowersOfThem() {
    let sizes: [(String, Int64)] = [("0", 0), ("800", 800), ("20K", 20_480), ("1G", 1 << 30), ("2T", 2 << 40)]
    for (text, bytes) in sizes { #expect(SizeArgument(argument: text)?.bytes == bytes, "\(text)") }
    for text in ["", "K", "-1", "1k", "1GB", "1.5G", "9223372036854775807K"] {
      #expect(SizeArgument(argument: text) == nil, "\(text)")
    }
  }

  @Test func ratesAreSizesThatAreNotTooLowOrNone() {
    let rates: [(String, Int64)] = [("none", 0), ("16K", 16_384), ("2M", 2 << 20), ("20000", 20_000)]
    for (text, bytes) in rates { #expect(RateArgument(argument: text)?.bytes == bytes, "\(text)") }
    for text in ["", "0", "15K", "-1", "2MB/s", "None"] { #expect(RateArgument(argument: text) == nil, "\(text)") }
  }
}
