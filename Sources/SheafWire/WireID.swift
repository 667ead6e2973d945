public import Foundation

/// The id of an item or a version: a UUID, in JSON in lower case.
public struct WireID: Hashable, Sendable, Codable, CustomStringConvertible {
  // In the order of the bytes, so that comparing these compares those.
  private let high: UInt64
  private let low: UInt64

  public var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 16) { bytes, count in
      for index in 0..<16 { bytes[index] = byte(index) }
      count = 16
    }
  }

  private func byte(_ index: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: (index < 8 ? high : low) >> UInt64(56 - index % 8 * 8))
  }

  private init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// - Returns: nil where there are not 16 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    self = bytes.withUnsafeBytes { Self($0) }
  }

  public init(_ uuid: UUID) { self = withUnsafeBytes(of: uuid.uuid) { Self($0) } }

  private init(_ bytes: UnsafeRawBufferPointer) {
    high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
    low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
  }

  /// A new one.
  public init() { self.init(UUID()) }

  /// When it was made, in nanoseconds since 1970, to milliseconds; nil where it does not say (RFC 9562, version 7, does).
  public var time: Int64? {
    guard high >> 12 & 0xF == 7 else { return nil }
    let (time, isPast) = Int64(high >> 16).multipliedReportingOverflow(by: 1_000_000)
    return isPast ? nil : time
  }

  /// - Returns: nil where it is no UUID in its usual form, with digits in upper or lower case.
  public init?(_ text: String) {
    var text = text
    let id: WireID? = text.withUTF8 { digits in
      guard digits.count == 36 else { return nil }
      var (high, low, count): (UInt64, UInt64, Int) = (0, 0, 0)
      for (index, digit) in digits.enumerated() {
        if Self.hyphens.contains(index) {
          guard digit == UInt8(ascii: "-") else { return nil }
          continue
        }
        let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(digit)
        guard let value = Hexadecimal.value(isUpper ? digit | 0x20 : digit) else { return nil }
        if count < 16 { high = high << 4 | UInt64(value) } else { low = low << 4 | UInt64(value) }
        count += 1
      }
      return WireID(high: high, low: low)
    }
    guard let id else { return nil }
    self = id
  }

  /// Where a UUID has its hyphens.
  private static let hyphens = [8, 13, 18, 23]

  /// The folder `Documents`, which every zone has.
  public static let root = WireID(high: 0, low: 0)

  public var description: String {
    String(unsafeUninitializedCapacity: 36) { digits in
      var end = 0
      for index in 0..<16 {
        if Self.hyphens.contains(end) {
          digits[end] = UInt8(ascii: "-")
          end += 1
        }
        Hexadecimal.write(byte(index), to: digits, &end)
      }
      return end
    }
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let id = WireID(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "is no UUID")
    }
    self = id
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension WireID: Comparable {
  /// By their bytes.
  public static func < (left: WireID, right: WireID) -> Bool {
    left.high == right.high ? left.low < right.low : left.high < right.high
  }
}

/// The SHA-256 of a chunk, in JSON as 64 hexadecimal digits in lower case.
public struct ChunkHash: Hashable, Sendable, Codable, CustomStringConvertible {
  public let bytes: [UInt8]

  /// - Returns: nil where there are not 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.bytes = bytes
  }

  /// - Returns: nil where it is anything but 64 digits.
  public init?(_ text: String) {
    guard text.utf8.count == 64, let bytes = Hexadecimal.bytes(of: text) else { return nil }
    self.bytes = bytes
  }

  public var description: String { Hexadecimal.text(of: bytes) }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let hash = ChunkHash(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "is no SHA-256 in hexadecimal digits")
    }
    self = hash
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
