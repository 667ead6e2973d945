/// How JSON from strangers is built, which is looked at before it is decoded: a decoder takes long for some of it.
public struct JSONShape: Hashable, Sendable {
  /// How deep hubs and their clients take it.
  public static let deepest = 32
  /// Bytes of the longest number that they take.
  public static let longestNumber = 64
  /// Values that clients take: four times those that 65,536 copied parts of a version have.
  public static let mostValues = 1 << 20
  /// Values that hubs take: more than those of as many extents as one request has room for.
  public static let mostSentValues = 1 << 19

  /// How deep arrays and objects lie in each other.
  public let depth: Int
  /// How many values there are in it, and a few more: each array, object and comma counts.
  public let values: Int
  /// Bytes of the longest number, or other word outside of texts.
  public let number: Int

  /// - Parameter most: With more values than that, nothing more is looked at.
  @inlinable
  public init(of bytes: some Collection<UInt8>, upTo most: Int = mostValues) {
    var (deepest, depth, values, longest, length) = (0, 0, 0, 0, 0)
    var (isText, isEscaped) = (false, false)
    for byte in bytes {
      if values > most { break }
      if isText {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isText = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isText = true
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        depth += 1
        deepest = max(deepest, depth)
        values += 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      case UInt8(ascii: ","): values += 1
      case UInt8(ascii: ":"), UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "\t"): break
      default:
        length += 1
        longest = max(longest, length)
        continue
      }
      length = 0
    }
    (self.depth, self.values, number) = (deepest, values, longest)
  }
}
