/// Names for items whose own name is taken, made of bytes that need not be UTF-8.
package enum MarkedName {
  /// `NAME (2).EXT`.
  ///
  /// - Parameters:
  ///   - name: Bytes of a name.
  ///   - isFolder: Whether it is a folder's, in which a dot begins no extension.
  /// - Returns: a name of at most ``WireLimits/nameBytes`` bytes.
  package static func numbered(_ name: [UInt8], _ number: Int, isFolder: Bool) -> [UInt8] {
    marked(name, "\(number)", isFolder: isFolder)
  }

  /// `NAME (MARK).EXT`.
  package static func marked(_ name: [UInt8], _ mark: String, isFolder: Bool) -> [UInt8] {
    // A leading dot begins no extension, nor does one before a space, as in a mark. A folder has none.
    let dot =
      isFolder
      ? nil
      : name.lastIndex(of: UInt8(ascii: ".")).flatMap { dot in
        dot == 0 || name[dot...].contains(UInt8(ascii: " ")) ? nil : dot
      }
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
