import SheafModel
import SheafStore

/// A search for a file that has one name below a folder and another one elsewhere.
struct LinkSearch {
  /// A name of a file.
  struct Name {
    let folder: Int64
    let name: [UInt8]
  }

  /// The folder.
  let top: Int64
  /// Names and folders that were looked at.
  private(set) var looked = 0
  /// How many may be looked at before the other way is tried.
  private var limit = 0

  init(below top: Int64) { self.top = top }

  /// Begins one way of searching, which may look at `count` names and folders.
  mutating func begin(_ count: Int) { limit = looked + count }

  /// Notes what was looked at; says whether the search may go on this way.
  mutating func look(at count: Int) -> Bool {
    looked += count
    return looked <= limit
  }
}

/// Hard links across the border of a folder.
///
/// Files that have several names are known from either side: from the folder, below which they lie, or from the
/// library, which has a list of all names but the oldest of each file. Neither is always short. So both ways are tried
/// with a limit that grows, and finding out costs as much as the shorter one, a few times over: what other folders have
/// does not matter where little moves, nor does what moves where there are few links.
extension Library {
  /// The result of searching in one way.
  private enum Finding {
    case name(LinkSearch.Name)
    case nothing
    /// That it takes longer.
    case undecided
  }

  /// Names and folders that are looked at first, in each way, and by what that grows.
  private static let firstLook = (count: 1024, growth: 4)

  /// A name that lies outside of the folder, of a file that has one below it too; nil where there is none.
  func nameAcross(_ search: inout LinkSearch) throws -> LinkSearch.Name? {
    var count = Self.firstLook.count
    while true {
      for way in [nameAcrossByLinks, nameAcrossByWalking] {
        search.begin(count)
        switch try way(&search, count) {
        case .name(let name): return name
        case .nothing: return nil
        case .undecided: break
        }
      }
      count *= Self.firstLook.growth
    }
  }

  /// Searches the further names of all files, if there are not more than `count`.
  private func nameAcrossByLinks(_ search: inout LinkSearch, _ count: Int) throws -> Finding {
    let links = try read { try $0.extraNames(limit: count + 1) }
    guard search.look(at: links.count) else { return .undecided }
    var sides: [Int64: Bool] = [search.top: true]
    for link in links {
      guard let isExtraInside = try isInside(link.folder, &sides, &search),
        let isOldestInside = try isInside(link.oldestFolder, &sides, &search)
      else { return .undecided }
      if isExtraInside, !isOldestInside { return .name(.init(folder: link.oldestFolder, name: link.oldestName)) }
      if isOldestInside, !isExtraInside { return .name(.init(folder: link.folder, name: link.name)) }
    }
    return .nothing
  }

  /// Whether a folder is that of a search or lies below it; nil where finding out takes longer.
  ///
  /// - Parameter sides: the sides of the folders on the way, as far as known.
  private func isInside(
    _ folder: Int64, _ sides: inout [Int64: Bool], _ search: inout LinkSearch
  ) throws -> Bool? {
    var passed: [Int64] = []
    var isInside = false
    var mayGoOn = true
    try ascend(from: folder) { inode in
      if let known = sides[inode.ino] {
        isInside = known
        return false
      }
      passed.append(inode.ino)
      mayGoOn = search.look(at: 1)
      return mayGoOn
    }
    for ino in passed where mayGoOn { sides[ino] = isInside }
    return mayGoOn ? isInside : nil
  }

  /// Searches what lies below the folder: each file with several names has all of them there, or one outside.
  private func nameAcrossByWalking(_ search: inout LinkSearch, _ count: Int) throws -> Finding {
    var folders = [search.top]
    var inside: Set<Int64> = [search.top]
    /// How many names of each file are still to be found.
    var missing: [Int64: Int64] = [:]
    while let folder = folders.popLast() {
      var last: EntryRow?
      repeat {
        let page = try read { try $0.linkCounts(in: folder, after: last, limit: Self.firstLook.count) }
        guard search.look(at: page.count) else { return .undecided }
        for row in page {
          if row.isFolder {
            if inside.insert(row.entry.ino).inserted { folders.append(row.entry.ino) }
          } else if row.count > 1 {
            missing[row.entry.ino, default: row.count] -= 1
          }
        }
        last = page.count == Self.firstLook.count ? page.last?.entry : nil
      } while last != nil
    }
    for (ino, count) in missing where count > 0 {
      for name in try read({ try $0.names(of: ino) }) where !inside.contains(name.folder) {
        return .name(.init(folder: name.folder, name: name.name))
      }
    }
    return .nothing
  }
}
