import Foundation

/// What a file's name says it is for, where nothing else decides (rules 5, 6, 8, 10, 12 and 13 of ``Identity``).
enum FileRole: Equatable {
  /// A lock, probe, swap or autosave file: never a document.
  case scratch
  /// Something that will be renamed or removed.
  case temporary
  /// The earlier contents, or the lock, of the file of the name given, if there is one beside it.
  case backup(of: [UInt8])
  case document

  init(_ name: [UInt8]) {
    let text = String(decoding: name, as: UTF8.self)
    if Self.isScratch(text) {
      self = .scratch
    } else if Self.isTemporary(text) {
      self = .temporary
    } else if let original = Self.original(of: text), !original.isEmpty {
      self = .backup(of: Array(original.utf8))
    } else {
      self = .document
    }
  }

  /// Whether no event speaks of a file of this name.
  ///
  /// - Parameter hasSibling: whether a name exists in the same folder.
  func isQuiet(hasSibling: ([UInt8]) throws -> Bool) rethrows -> Bool {
    switch self {
    case .scratch, .temporary: true
    case .backup(let original): try hasSibling(original)
    case .document: false
    }
  }

  /// Whether a program seems to have chosen the name for a file that is not to stay.
  static func looksPassing(_ name: [UInt8]) -> Bool {
    if FileRole(name) != .document { return true }
    let text = String(decoding: name, as: UTF8.self)
    return text.hasPrefix("tmp") || text.hasPrefix("temp") || text.hasPrefix(".") || text.contains(".tmp")
      || text.contains(".temp") || text.hasSuffix(".new") || hasRandomEnding(text)
  }

  /// Whether `copy` is named as programs name the backup of `name`.
  static func isBackup(_ copy: [UInt8], of name: [UInt8]) -> Bool { FileRole(copy) == .backup(of: name) }

  /// Whether `copy` is named after `name`, as a backup or in another way.
  static func isNamedAfter(_ copy: [UInt8], _ name: [UInt8]) -> Bool {
    if copy == name || isBackup(copy, of: name) { return true }
    guard name.count >= 3, copy.count > name.count else { return false }
    for start in 0...(copy.count - name.count) where copy[start..<(start + name.count)].elementsEqual(name) {
      return true
    }
    return false
  }

  private static let backupEndings = [
    "~", ".bak", ".backup", ".orig", ".old", ".save", ".BAK", ".bck", "_original", "___jb_old___", ".~qpdf-orig",
    ".augsave", ".lock",
  ]

  /// The name of which `text` is a backup.
  private static func original(of text: String) -> String? {
    for ending in backupEndings where text.hasSuffix(ending) {
      let stem = String(text.dropLast(ending.count))
      // doc.~1~ as GNU programs number them.
      if ending == "~", let dot = stem.range(of: ".~", options: .backwards),
        stem[dot.upperBound...].allSatisfy(\.isNumber), dot.upperBound < stem.endIndex
      {
        return String(stem[..<dot.lowerBound])
      }
      return stem
    }
    return nil
  }

  private static func isScratch(_ text: String) -> Bool {
    if text == "4913" || text.hasPrefix(".~lock.") || text.hasPrefix(".#") || text.hasPrefix("~$") { return true }
    if text.count > 2, text.hasPrefix("#"), text.hasSuffix("#") { return true }
    if text.hasSuffix("-journal") || text.hasSuffix(".kate-swp") || text.hasPrefix(".nfs") { return true }
    guard text.hasPrefix("."), let dot = text.lastIndex(of: "."), dot > text.startIndex else { return false }
    let ending = text[text.index(after: dot)...]
    return ending.count == 3 && ending.hasPrefix("sw") && ending.allSatisfy { $0.isASCII && $0.isLetter }
  }

  private static let temporaryEndings = [
    ".tmp", ".TMP", ".temp", ".part", ".partial", ".crdownload", "___jb_tmp___", ".swp", "_exiftool_tmp",
    ".dpkg-tmp", ".dpkg-new", "-wal", "-shm",
  ]

  private static func isTemporary(_ text: String) -> Bool {
    if text.hasPrefix(".goutputstream-") || text.hasPrefix(".dat.nosync") || text.hasPrefix(".sb-") { return true }
    return temporaryEndings.contains { text.count > $0.count && text.hasSuffix($0) }
  }

  /// Whether the name ends as mkstemp(3) ends it: six or more letters and digits that are no word.
  private static func hasRandomEnding(_ text: String) -> Bool {
    let ending = text.utf8.suffix(6)
    guard ending.count == 6, ending.allSatisfy({ isAlphanumeric($0) }) else { return false }
    let digits = ending.count { (48...57).contains($0) }
    let capitals = ending.dropFirst().count { (65...90).contains($0) }
    let smalls = ending.count { (97...122).contains($0) }
    return (capitals > 0 && smalls > 0) || (digits > 0 && digits < 5 && smalls + capitals > 0 && !isCounted(ending))
  }

  /// Whether digits come only at the end, as in `notes2`.
  private static func isCounted(_ ending: Substring.UTF8View.SubSequence) -> Bool {
    var hasDigit = false
    for byte in ending {
      if (48...57).contains(byte) {
        hasDigit = true
      } else if hasDigit {
        return false
      }
    }
    return true
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
  }
}
