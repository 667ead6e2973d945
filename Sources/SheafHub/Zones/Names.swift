import SheafModel
import SheafWire

/// Names that the hub makes, from bytes that need not be UTF-8.
enum Names {
  /// A document of this name says which others are plain files, as docs/REFERENCE.md explains.
  static let rules = Array(".sheafignore".utf8)

  /// `NAME (2).EXT`.
  static func numbered(_ name: [UInt8], _ number: Int, kind: ItemKind) -> [UInt8] {
    marked(name, "\(number)", kind: kind)
  }

  /// `NAME (HANDLE DATE DEVICE).EXT`, for contents that go beside a document.
  static func beside(_ name: [UInt8], author: SendAuthor) -> [UInt8] {
    let device = author.deviceName.split { $0 == "/" || $0 == "\0" }.joined(separator: "-")
    let mark = "\(author.handle) \(author.now.secondsText.prefix(10)) \(device.prefix(40))"
    // Room for a name and an extension beside a long mark.
    return marked(name, String(decoding: Array(mark.utf8).prefix(120), as: UTF8.self), kind: .document)
  }

  private static func marked(_ name: [UInt8], _ mark: String, kind: ItemKind) -> [UInt8] {
    // A leading dot begins no extension, and a folder has none.
    let dot = kind == .folder ? nil : name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 == 0 ? nil : $0 }
    var stem = Array(name[..<(dot ?? name.count)])
    var end = Array(" (\(mark))".utf8) + name[(dot ?? name.count)...]
    if end.count >= WireLimits.nameBytes { end = Array(" (\(mark))".utf8) }
    while stem.count + end.count > WireLimits.nameBytes {
      // Whole characters: the bytes that go on one, and the byte that begins it.
      while let last = stem.last, last & 0xC0 == 0x80, stem.count > 1 { stem.removeLast() }
      stem.removeLast()
    }
    return stem + end
  }
}
