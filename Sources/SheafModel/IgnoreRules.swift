/// The rules of one `.sheafignore`, in the syntax of gitignore(5): which names are plain files, without versions and
/// events.
package struct IgnoreRules: Hashable, Sendable {
  /// Bytes of a file that are read, and rules that count.
  package static let longest = 64 << 10
  private static let limit = 1000

  /// The rules if no file says otherwise: files that systems and tools leave beside people's work, and make again.
  package static let byDefault = IgnoreRules(
    Array(".DS_Store\nThumbs.db\nehthumbs.db\ndesktop.ini\n__pycache__/\nnode_modules/\n.cache/\n".utf8))

  private enum Part: Hashable, Sendable {
    case name(NamePattern)
    /// `**`: any number of folders.
    case folders
  }

  private struct Rule: Hashable, Sendable {
    let parts: [Part]
    /// Whether it is of a path from the file's folder on, and not of a name at any depth.
    let isOfPath: Bool
    let isOfFolders: Bool
    let isNegated: Bool
  }

  private let rules: [Rule]
  /// Whether some rule asks for more of a path than the last name.
  package let needPaths: Bool

  /// Takes what git(1) would: a line that is no rule counts for nothing.
  package init(_ text: some Collection<UInt8>) {
    rules = text.prefix(Self.longest).split(separator: UInt8(ascii: "\n")).lazy
      .compactMap { Self.rule(String(decoding: $0, as: UTF8.self)) }.prefix(Self.limit).map(\.self)
    needPaths = rules.contains(where: \.isOfPath)
  }

  package var isEmpty: Bool { rules.isEmpty }

  private static func rule(_ line: String) -> Rule? {
    var text = line[...]
    if text.last == "\r" { text = text.dropLast() }
    // Blanks at the end count only behind a backslash.
    while text.last == " ", !text.dropLast().hasSuffix("\\") { text = text.dropLast() }
    guard let first = text.first, first != "#" else { return nil }
    let isNegated = first == "!"
    if isNegated { text = text.dropFirst() }
    let isOfFolders = text.last == "/"
    if isOfFolders { text = text.dropLast() }
    let isOfPath = text.contains("/")
    let names = text.split(separator: "/")
    guard !names.isEmpty else { return nil }
    var parts: [Part] = []
    for name in names {
      if name == "**" {
        if parts.last != .folders { parts.append(.folders) }
        continue
      }
      guard let pattern = try? NamePattern(String(name)) else { return nil }
      parts.append(.name(pattern))
    }
    if parts.last == .folders {
      // All that is in a folder, and not the folder.
      guard let any = try? NamePattern("*") else { return nil }
      parts.append(.name(any))
    }
    return Rule(parts: parts, isOfPath: isOfPath, isOfFolders: isOfFolders, isNegated: isNegated)
  }

  /// Whether something is ignored; nil where no rule is of it. Of several the last one decides.
  ///
  /// - Parameter path: the names from the file's folder on; the last one suffices unless the rules ``needPaths``.
  package func verdict(_ path: [[UInt8]], isFolder: Bool) -> Bool? {
    guard let name = path.last else { return nil }
    let rule = rules.last { rule in
      guard isFolder || !rule.isOfFolders else { return false }
      if rule.isOfPath { return Self.fits(path, rule.parts) }
      guard case .name(let pattern) = rule.parts.last else { return false }
      return pattern.matches(name)
    }
    return rule.map { !$0.isNegated }
  }

  /// Compares names with parts one after the other, in as many steps as there are names times parts.
  private static func fits(_ path: [[UInt8]], _ parts: [Part]) -> Bool {
    var (place, part) = (0, 0)
    var folders: (part: Int, place: Int)?
    while place < path.count {
      if part < parts.count, parts[part] == .folders {
        folders = (part, place)
        part += 1
      } else if part < parts.count, case .name(let pattern) = parts[part], pattern.matches(path[place]) {
        place += 1
        part += 1
      } else if let last = folders {
        folders = (last.part, last.place + 1)
        (part, place) = (last.part + 1, last.place + 1)
      } else {
        return false
      }
    }
    return parts[part...].allSatisfy { $0 == .folders }
  }
}
