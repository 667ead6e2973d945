import ArgumentParser
import SheafModel

/// A span of time as commands take it: `90s`, `15m`, `12h`, `7d`, `2w`, `1y`.
struct SpanArgument: ExpressibleByArgument, Hashable {
  private static let units: [Character: Int64] = [
    "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400,
  ]

  let seconds: Int64

  init?(argument: String) {
    guard let unit = argument.last.flatMap({ Self.units[$0] }),
      let seconds = Quantity.parse(argument.dropLast(), times: unit), seconds <= TrashSelection.longestSpan
    else { return nil }
    self.seconds = seconds
  }
}

/// A number of bytes as commands take it: `800`, `20K`, `5M`, `1G`, `2T`, powers of 1,024 as du(1) takes them.
struct SizeArgument: ExpressibleByArgument, Hashable {
  private static let units: [Character: Int64] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40]

  let bytes: Int64

  init?(argument: String) {
    let unit = argument.last.flatMap { Self.units[$0] }
    guard let bytes = Quantity.parse(unit == nil ? argument[...] : argument.dropLast(), times: unit ?? 1) else {
      return nil
    }
    self.bytes = bytes
  }
}

/// Bytes in a second as commands take them: a number of bytes as ``SizeArgument`` has it, or `none` for no limit.
struct RateArgument: ExpressibleByArgument, Hashable {
  /// Bytes in a second; 0 for no limit.
  let bytes: Int64

  init?(argument: String) {
    if argument == "none" {
      bytes = 0
      return
    }
    guard let size = SizeArgument(argument: argument), size.bytes >= ConnectionChange.lowestLimit else { return nil }
    bytes = size.bytes
  }
}

/// Bytes that contents may take: a size as ``SizeArgument`` has it, or `none` for no limit.
struct CacheArgument: ExpressibleByArgument, Hashable {
  /// Negative for no limit.
  let bytes: Int64

  init?(argument: String) {
    guard let size = argument == "none" ? -1 : SizeArgument(argument: argument)?.bytes else { return nil }
    bytes = size
  }
}

private enum Quantity {
  /// Decimal digits times a unit; nil for anything else, and for what is too much.
  static func parse(_ digits: Substring, times unit: Int64) -> Int64? {
    guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let number = Int64(digits)
    else { return nil }
    let (product, overflow) = number.multipliedReportingOverflow(by: unit)
    return overflow ? nil : product
  }
}
