/// How deep arrays and objects lie in each other in JSON from strangers, which is looked at before it is decoded.
public enum JSONDepth {
  /// What hubs and their clients take.
  public static let deepest = 32

  @inlinable
  public static func of(_ bytes: some Collection<UInt8>) -> Int {
    var (deepest, depth, isText, isEscaped) = (0, 0, false, false)
    for byte in bytes {
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
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      default: break
      }
    }
    return deepest
  }
}
