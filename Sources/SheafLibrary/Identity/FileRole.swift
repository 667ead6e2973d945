import Glibc

/// The purpose of a file by its name, used if nothing else decides (rules 5, 6, 8, 10, 12 and 13 of ``Identity``).
enum FileRole: Equatable {
  /// A lock, probe, swap or autosave file: a document to nobody but the program that made it.
  case scratch
  /// Something that will be renamed or removed.
  case temporary
  /// The earlier contents, the lock or the journal of the file of the name given, if there is one beside it.
  case backup(of: [UInt8])
  case document

  init(_ name: [UInt8]) {
    if Self.isScratch(name) {
      self = .scratch
    } else if Self.isTemporary(name) {
      self = .temporary
    } else if let original = Self.original(of: name), !original.isEmpty {
      self = .backup(of: Array(original))
    } else {
      self = .document
    }
  }

  /// Whether no event speaks of a file of this name.
  ///
  /// - Parameter hasSibling: whether a name exists in the same folder.
  func isQuiet(hasSibling: ([UInt8]) throws -> Bool) rethrows -> Bool {
    switch self {
    case .scratch, .temporary: return true
    case .backup(var original):
      // Also doc.1~ and doc.DATE.bak of doc.
      repeat {
        if try hasSibling(original) { return true }
        original = Array(original.prefix(upTo: original.lastIndex(of: UInt8(ascii: ".")) ?? 0))
      } while !original.isEmpty
      return false
    case .document: return false
    }
  }

  /// Whether a program seems to have chosen the name for a file that is not to stay.
  static func looksPassing(_ name: [UInt8]) -> Bool {
    if FileRole(name) != .document { return true }
    if name == Library.ignoreName { return false }
    return name.begins(with: "tmp") || name.begins(with: "temp") || name.begins(with: ".") || name.has(".tmp")
      || name.has(".temp") || name.ends(with: ".new") || hasRandomEnding(name)
  }

  /// Whether `copy` is named as programs name the backup of `name`: `a.txt~`, `a.txt.bak`, `a.bak`.
  static func isBackup(_ copy: [UInt8], of name: [UInt8]) -> Bool {
    guard case .backup(let original) = FileRole(copy) else { return false }
    if original == name { return true }
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return false }
    return name[..<dot].elementsEqual(original)
  }

  /// Whether a folder has the name of one in which programs keep backups: `bak`, `.backups`.
  static func isForBackups(_ folder: [UInt8]) -> Bool {
    let name = folder.drop { $0 == UInt8(ascii: ".") }
    return ["bak", "backup", "backups"].contains { name.elementsEqual($0.utf8) }
  }

  /// Whether `copy` is named after `name`, as a backup or in another way.
  static func isNamedAfter(_ copy: [UInt8], _ name: [UInt8]) -> Bool {
    if copy == name || isBackup(copy, of: name) { return true }
    guard name.count >= 3, copy.count > name.count else { return false }
    for start in 0...(copy.count - name.count) where copy[start..<(start + name.count)].elementsEqual(name) {
      return true
    }
    return false
  }

  /// A name as it is without what says that the file is hidden, or not to stay: `plan.md` of `.plan.md.tmp`.
  static func lasting(_ name: [UInt8]) -> [UInt8] {
    var rest = name[...]
    if let ending = temporaryEndings.first(where: name.ends(with:)) { rest = rest.dropLast(ending.utf8CodeUnitCount) }
    rest = rest.drop { $0 == UInt8(ascii: ".") }
    return rest.isEmpty ? name : Array(rest)
  }

  private static let backupEndings: [StaticString] = [
    "~", ".bak", ".backup", ".orig", ".old", ".save", ".BAK", ".bck", "_original", "___jb_old___", ".~qpdf-orig",
    ".augsave", ".lock", "-journal", "-wal", "-shm",
  ]

  /// The name of which `name` is a backup.
  private static func original(of name: [UInt8]) -> ArraySlice<UInt8>? {
    // doc~.txt of doc.txt.
    if let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 1, name[dot - 1] == UInt8(ascii: "~") {
      return name[..<(dot - 1)] + name[dot...]
    }
    for ending in backupEndings where name.ends(with: ending) {
      let stem = name.dropLast(ending.utf8CodeUnitCount)
      // doc.~1~ as GNU programs number them.
      if ending.utf8CodeUnitCount == 1, let tilde = stem.lastIndex(of: UInt8(ascii: "~")), tilde > 0,
        stem[tilde - 1] == UInt8(ascii: "."), tilde + 1 < stem.endIndex, stem[(tilde + 1)...].allSatisfy(isDigit)
      {
        return stem[..<(tilde - 1)]
      }
      return stem
    }
    return nil
  }

  private static func isScratch(_ name: [UInt8]) -> Bool {
    if name == Array("4913".utf8) || name.begins(with: ".~lock.") || name.begins(with: ".#") || name.begins(with: "~$")
    {
      return true
    }
    if name.count > 2, name.begins(with: "#"), name.ends(with: "#") { return true }
    if name.ends(with: ".kate-swp") || name.begins(with: ".nfs") { return true }
    if name.begins(with: "."), name.ends(with: ".un~") { return true }
    guard name.begins(with: "."), let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return false }
    let ending = Array(name[(dot + 1)...])
    return ending.count == 3 && ending.begins(with: "sw") && isLetter(ending[2])
  }

  private static let temporaryEndings: [StaticString] = [
    ".tmp", ".TMP", ".temp", ".part", ".partial", ".crdownload", "___jb_tmp___", ".swp", "_exiftool_tmp",
    ".dpkg-tmp", ".dpkg-new",
  ]

  private static func isTemporary(_ name: [UInt8]) -> Bool {
    if name.begins(with: ".goutputstream-") || name.begins(with: ".dat.nosync") || name.begins(with: ".sb-") {
      return true
    }
    return temporaryEndings.contains { name.count > $0.utf8CodeUnitCount && name.ends(with: $0) }
  }

  /// Whether the name ends as mkstemp(3) ends it, with six or more letters and digits that are no word; or with a hash
  /// or a UUID.
  private static func hasRandomEnding(_ name: [UInt8]) -> Bool {
    let hexadecimal = name.reversed().prefix { isDigit($0) || (65...70).contains($0 & ~32) || $0 == UInt8(ascii: "-") }
    if hexadecimal.count >= 16, hexadecimal.contains(where: isDigit), hexadecimal.contains(where: isLetter) {
      return true
    }
    let ending = name.suffix(6)
    guard ending.count == 6, ending.allSatisfy({ isDigit($0) || isLetter($0) }) else { return false }
    let digits = ending.count(where: isDigit)
    let capitals = ending.dropFirst().count { isLetter($0) && $0 < 97 }
    let smalls = ending.count { isLetter($0) && $0 >= 97 }
    return (capitals > 0 && smalls > 0) || (digits > 0 && digits < 5 && smalls + capitals > 0 && !isCounted(ending))
  }

  /// Whether digits come only at the end, as in `notes2`.
  private static func isCounted(_ ending: ArraySlice<UInt8>) -> Bool {
    ending.drop { !isDigit($0) }.allSatisfy(isDigit)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  private static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) }
}

/// Names are bytes, and every file that is made is looked at: no Unicode, no copies.
extension [UInt8] {
  fileprivate func begins(with text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    return self.count >= count && withUnsafeBytes { memcmp($0.baseAddress!, text.utf8Start, count) == 0 }
  }

  fileprivate func ends(with text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    return count >= length
      && withUnsafeBytes { memcmp($0.baseAddress! + (count - length), text.utf8Start, length) == 0 }
  }

  fileprivate func has(_ text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    guard count >= length else { return false }
    return withUnsafeBytes { bytes in
      (0...(count - length)).contains { memcmp(bytes.baseAddress! + $0, text.utf8Start, length) == 0 }
    }
  }
}
