import Glibc

/// One step of a random sequence; handles are numbered places that may be empty.
public enum Operation: Hashable, Sendable {
  case open(Int, Path, flags: Int32, mode: UInt32)
  case close(Int)
  case read(Int, count: Int)
  case pread(Int, at: Int64, count: Int)
  case write(Int, count: Int, seed: UInt64)
  case pwrite(Int, at: Int64, count: Int, seed: UInt64)
  case seek(Int, Int64, whence: Int32)
  case ftruncate(Int, Int64)
  case allocate(Int, mode: Int32, at: Int64, count: Int64)
  case fsync(Int)
  case fstat(Int)
  case fchmod(Int, UInt32)
  case copy(Int, at: Int64, to: Int, at2: Int64, count: Int)
  /// Stores through a shared mapping.
  case store(Int, at: Int, count: Int, seed: UInt64)
  case mkdir(Path, UInt32)
  case rmdir(Path)
  case unlink(Path)
  case rename(Path, Path, UInt32)
  case link(Path, Path)
  case symlink(Path, at: Path)
  case readlink(Path)
  case mknod(Path)
  case truncate(Path, Int64)
  case chmod(Path, UInt32)
  case utimens(Path, Time, following: Bool)
  case setxattr(Path, Path, count: Int, seed: UInt64, flags: Int32)
  case getxattr(Path, Path)
  case removexattr(Path, Path)
  case lstat(Path)
  case list(Path)
}

extension Operation {
  /// Draws the next step. It depends on the numbers alone, not on what earlier steps did, so that a seed replays.
  public static func random(using random: inout SeededRandom) -> Operation {
    let slot = Int.random(in: 0..<6, using: &random)
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<12:
      let flags = [
        O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_EXCL, O_WRONLY | O_CREAT | O_TRUNC, O_RDONLY, O_RDWR,
        O_RDWR | O_CREAT | O_APPEND, O_RDWR | O_TRUNC, O_RDONLY | O_NOFOLLOW,
      ]
      return .open(slot, path(&random), flags: flags.randomElement(using: &random)!, mode: mode(&random))
    case 12..<16: return .close(slot)
    case 16..<19: return .read(slot, count: count(&random))
    case 19..<22: return .pread(slot, at: offset(&random), count: count(&random))
    case 22..<27: return .write(slot, count: count(&random), seed: random.next() % 1000)
    case 27..<36: return .pwrite(slot, at: offset(&random), count: count(&random), seed: random.next() % 1000)
    case 36: return .seek(slot, offset(&random), whence: [SEEK_SET, SEEK_CUR, SEEK_END].randomElement(using: &random)!)
    case 37..<39: return .ftruncate(slot, offset(&random))
    case 39..<42:
      let mode = [0, keepSize, punchHole, zeroRange, zeroRange | keepSize].randomElement(using: &random)!
      return .allocate(slot, mode: mode, at: offset(&random), count: Int64(count(&random)))
    case 42: return .fsync(slot)
    case 43: return .fstat(slot)
    case 44: return .fchmod(slot, mode(&random))
    case 45:
      let other = Int.random(in: 0..<6, using: &random)
      return .copy(slot, at: offset(&random), to: other, at2: offset(&random), count: count(&random))
    case 46..<48: return .store(slot, at: Int(offset(&random)), count: count(&random), seed: random.next() % 1000)
    case 48..<54: return .mkdir(path(&random), mode(&random) | 0o700)
    case 54..<57: return .rmdir(path(&random))
    case 57..<62: return .unlink(path(&random))
    case 62..<75:
      let flags = [0, 0, 0, 0, 0, noReplace, exchange].randomElement(using: &random)!
      return .rename(path(&random), path(&random), flags)
    case 75..<79: return .link(path(&random), path(&random))
    case 79..<82: return .symlink(target(&random), at: path(&random))
    case 82: return .readlink(path(&random))
    case 83: return .mknod(path(&random))
    case 84..<86: return .truncate(path(&random), offset(&random))
    case 86..<88: return .chmod(path(&random), mode(&random))
    case 88..<90:
      let time = Time(
        Int.random(in: 0..<1_000_000_000, using: &random), Int.random(in: 0..<1_000_000_000, using: &random))
      return .utimens(path(&random), time, following: Bool.random(using: &random))
    case 90..<93:
      let flags = [0, 0, 0, onlyCreate, onlyReplace].randomElement(using: &random)!
      let count = Int.random(in: 0..<100, using: &random)
      return .setxattr(path(&random), attribute(&random), count: count, seed: random.next() % 1000, flags: flags)
    case 93: return .getxattr(path(&random), attribute(&random))
    case 94: return .removexattr(path(&random), attribute(&random))
    case 95..<98: return .lstat(path(&random))
    default: return .list(path(&random))
    }
  }

  /// A path of one to three short names, so that sequences meet again and again.
  private static func path(_ random: inout SeededRandom) -> Path {
    let names: [Path] = ["a", "b", "c", "d", Path([0xFF, 0x0A])]
    var path = names.randomElement(using: &random)!
    for _ in 0..<[0, 0, 0, 1, 1, 2].randomElement(using: &random)! {
      path = path / names.randomElement(using: &random)!
    }
    return path
  }

  private static func target(_ random: inout SeededRandom) -> Path {
    ["a", "b", "../a", "./c/d", "nowhere", ".", "d/.."].randomElement(using: &random)!
  }

  private static func attribute(_ random: inout SeededRandom) -> Path {
    ["user.one", "user.two", "user.three"].randomElement(using: &random)!
  }

  private static func mode(_ random: inout SeededRandom) -> UInt32 {
    [0o644, 0o600, 0o755, 0o777, 0o640, 0o664].randomElement(using: &random)!
  }

  private static func offset(_ random: inout SeededRandom) -> Int64 {
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<3: 0
    case 3..<6: Int64.random(in: 0..<6000, using: &random)
    case 6..<9: Int64.random(in: 0..<300_000, using: &random)
    default: Int64.random(in: 0..<4_000_000, using: &random)
    }
  }

  private static func count(_ random: inout SeededRandom) -> Int {
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<5: Int.random(in: 1..<5000, using: &random)
    case 5..<9: Int.random(in: 1..<70_000, using: &random)
    default: Int.random(in: 1..<400_000, using: &random)
    }
  }
}
