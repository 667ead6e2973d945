import SheafWire

/// The name that an item gets where its own is taken: `NAME (2).EXT`.
enum NumberedName {
  /// - Parameters:
  ///   - name: Bytes of a name.
  ///   - isFolder: Whether it is a folder's, in which a dot begins no extension.
  /// - Returns: a name of at most 255 bytes, made of whole characters where the name is.
  static func name(_ name: [UInt8], _ number: Int, isFolder: Bool) -> [UInt8] {
    let dot = isFolder ? nil : name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 == 0 ? nil : $0 }
    var stem = name[..<(dot ?? name.count)]
    var end = Array(" (\(number))".utf8) + name[(dot ?? name.count)...]
    if end.count >= WireLimits.nameBytes { end = Array(" (\(number))".utf8) }
    while stem.count + end.count > WireLimits.nameBytes {
      while let last = stem.last, last & 0xC0 == 0x80, stem.count > 1 { stem.removeLast() }
      stem.removeLast()
    }
    return stem + end
  }
}
