public import Foundation

/// The id of an item or a version: a UUID, in JSON in lower case.
public struct WireID: Hashable, Sendable, Codable, CustomStringConvertible {
  public let bytes: [UInt8]

  /// - Returns: nil where there are not 16 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  public init(_ uuid: UUID) { bytes = withUnsafeBytes(of: uuid.uuid) { [UInt8]($0) } }

  /// A new one.
  public init() { self.init(UUID()) }

  /// - Returns: nil where it is no UUID in its usual form.
  public init?(_ text: String) {
    guard text.utf8.count == 36, let uuid = UUID(uuidString: text) else { return nil }
    self.init(uuid)
    // Foundation takes hyphens at other places, too.
    guard description == text.lowercased() else { return nil }
  }

  /// The folder `Documents`, which every zone has.
  public static let root = WireID(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))

  public var description: String {
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
    return text
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
  public static func < (left: WireID, right: WireID) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }
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
    let digits = Array(text.utf8)
    guard digits.count == 64 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: 64, by: 2) {
      guard let high = Self.value(digits[index]), let low = Self.value(digits[index + 1]) else { return nil }
      bytes.append(high << 4 | low)
    }
    self.bytes = bytes
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 48...57: digit - 48
    case 97...102: digit - 87
    default: nil
    }
  }

  public var description: String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

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
