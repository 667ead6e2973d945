public import Foundation

/// Bytes as text that stands in a URL as it is (RFC 4648, section 5), without padding.
public enum Base64URL {
  public static func text(_ bytes: some DataProtocol) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Nil for a text that is not what ``text(_:)`` makes of any bytes.
  public static func bytes(_ text: String) -> [UInt8]? {
    let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    let plain = text.replacing("-", with: "+").replacing("_", with: "/") + padding
    guard let data = Data(base64Encoded: plain), Self.text(data) == text else { return nil }
    return [UInt8](data)
  }

  /// Characters of so many bytes.
  public static func length(of bytes: Int) -> Int { (bytes * 4 + 2) / 3 }
}
