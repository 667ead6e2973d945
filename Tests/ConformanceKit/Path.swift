/// A path relative to the root of the file system under test, as bytes: names need not be UTF-8.
///
/// The empty path is the root itself.
public struct Path: Hashable, Sendable, ExpressibleByStringInterpolation, CustomStringConvertible {
  public let bytes: [UInt8]

  public init(_ bytes: [UInt8]) { self.bytes = bytes }
  public init(_ text: String) { bytes = Array(text.utf8) }
  public init(stringLiteral text: String) { self.init(text) }

  /// Joins two paths by a slash, unless the left one is the root.
  public static func / (folder: Path, name: Path) -> Path {
    folder.bytes.isEmpty ? name : Path(folder.bytes + [UInt8(ascii: "/")] + name.bytes)
  }

  /// A name of `count` times the same letter.
  public static func long(_ count: Int, of letter: Character = "n") -> Path {
    Path(String(repeating: letter, count: count))
  }

  public var description: String {
    let text = String(decoding: bytes, as: UTF8.self).replacing("\n", with: "\\n")
    return text.count <= 60 ? (text.isEmpty ? "." : text) : "\(text.prefix(40))…(\(bytes.count) bytes)"
  }

  /// The C string for a system call; the root is `.`.
  func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    let terminated = (bytes.isEmpty ? [UInt8(ascii: ".")] : bytes) + [0]
    return terminated.withUnsafeBufferPointer { buffer in
      buffer.baseAddress!.withMemoryRebound(to: CChar.self, capacity: buffer.count, body)
    }
  }
}
