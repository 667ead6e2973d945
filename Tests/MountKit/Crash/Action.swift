public import ConformanceKit
import Foundation
import Glibc

/// Contents that a number stands for.
public struct Contents: Hashable, Codable, Sendable {
  public var seed: UInt64
  public var count: Int

  public init(seed: UInt64, count: Int) {
    self.seed = seed
    self.count = count
  }

  public var bytes: [UInt8] { pattern(count, seed: seed) }
}

/// An action of a program on documents; names are relative to the folder that it works in.
public enum Action: Hashable, Codable, Sendable {
  /// Creates or truncates, writes, closes.
  case save(String, Contents)
  /// Writes a temporary file, syncs, closes, renames it over.
  case replace(String, Contents)
  /// Opens for appending, writes, syncs, closes.
  case append(String, Contents)
  /// Writes in the middle, closes.
  case patch(String, at: Int, Contents)
  case truncate(String, Int)
  case unlink(String)
  case rename(String, String)
  case link(String, String)
  case mkdir(String)
  case rmdir(String)
  case symlink(String, at: String)
  case chmod(String, UInt32)
  /// Sets `user.mark`.
  case mark(String, String)
  case unmark(String)
  /// Sets the modification time, in seconds.
  case touch(String, Int)
  /// Writes one byte in every ten, so often that a working copy spills, and closes.
  case scatter(String, Int)
  /// Reads all of it.
  case read(String)
  /// Removes it by a program of its own.
  case removeElsewhere(String)
  /// Does nothing for that many seconds, while the library does its upkeep.
  case pause(Double)
  /// Runs `sheaf` with arguments, in which `%` stands for the folder. It changes nothing in the tree.
  case command([String])
  /// Runs `sheaf`, after which the document holds the contents of an earlier save.
  case revive([String], String, Contents)

  /// The bytes of one write request.
  static let piece = 65_536

  /// Draws an action. Families of names keep actions apart whose outcome would depend on a document's identity.
  public static func random(using random: inout SeededRandom) -> Action {
    let number = Int.random(in: 0..<5, using: &random)
    let contents = Contents(
      seed: random.next() % 1_000_000,
      count: [0, 10, 3000, 70_000, 300_000].randomElement(using: &random)! + Int.random(in: 0..<50, using: &random))
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<4: return .save("f\(number)", contents)
    case 4..<7: return .replace("f\(number)", contents)
    case 7..<9: return .append("log\(number)", Contents(seed: contents.seed, count: contents.count % 5000 + 1))
    case 9: return .patch("f\(number)", at: Int.random(in: 0..<100_000, using: &random), contents)
    case 10: return .unlink("f\(number)")
    case 11: return .truncate("f\(number)", Int.random(in: 0..<100_000, using: &random))
    case 12: return .save("m\(number)", contents)
    case 13: return .rename("m\(number)", "m\(Int.random(in: 0..<5, using: &random))")
    case 14: return .mkdir("d\(number)")
    case 15: return .rmdir("d\(number)")
    case 16: return .symlink("target-\(contents.seed)", at: "s\(number)")
    case 17: return .unlink("s\(number)")
    case 18: return .chmod("d\(number)", [0o700, 0o755, 0o750].randomElement(using: &random)!)
    default: return .mark("d\(number)", "\(contents.seed)")
    }
  }

  /// Does it in `folder`.
  public func perform(in folder: String) throws(Errno) {
    switch self {
    case .save(let name, let contents):
      try write(folder, name, O_WRONLY | O_CREAT | O_TRUNC, contents.bytes)
    case .replace(let name, let contents):
      try write(folder, name + ".tmp", O_WRONLY | O_CREAT | O_TRUNC, contents.bytes, synchronizing: true)
      try done(Glibc.rename("\(folder)/\(name).tmp", "\(folder)/\(name)"))
    case .append(let name, let contents):
      try write(folder, name, O_WRONLY | O_CREAT | O_APPEND, contents.bytes, synchronizing: true)
    case .patch(let name, let offset, let contents):
      try write(folder, name, O_WRONLY, contents.bytes, at: offset)
    case .scatter(let name, let count):
      let file = Glibc.open("\(folder)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
      guard file >= 0 else { throw Errno(errno, "\(self)") }
      var failure: Errno?
      for number in 0..<count where failure == nil && Glibc.pwrite(file, "x", 1, number * 10) != 1 {
        failure = Errno(errno, "\(self)")
      }
      if Glibc.close(file) != 0 { failure = failure ?? Errno(errno, "\(self)") }
      if let failure { throw failure }
    case .read(let name):
      let file = Glibc.open("\(folder)/\(name)", O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { throw Errno(errno, "\(self)") }
      var buffer = [UInt8](repeating: 0, count: 1 << 20)
      var count = 0
      repeat { count = Glibc.read(file, &buffer, buffer.count) } while count > 0
      let code = errno
      close(file)
      if count < 0 { throw Errno(code, "\(self)") }
    case .removeElsewhere(let name):
      let output = try? Command(["rm", "\(folder)/\(name)"], limit: .seconds(60)).run()
      guard let output, output.status == 0 else {
        let isGone = output?.errorText.contains("No such file") ?? false
        throw Errno(isGone ? ENOENT : EIO, "\(self): \(output?.errorText ?? "late")")
      }
    case .pause(let seconds): Thread.sleep(forTimeInterval: seconds)
    case .truncate(let name, let size): try done(Glibc.truncate("\(folder)/\(name)", size))
    case .unlink(let name): try done(Glibc.unlink("\(folder)/\(name)"))
    case .rename(let from, let to): try done(Glibc.rename("\(folder)/\(from)", "\(folder)/\(to)"))
    case .link(let existing, let new): try done(Glibc.link("\(folder)/\(existing)", "\(folder)/\(new)"))
    case .mkdir(let name): try done(Glibc.mkdir("\(folder)/\(name)", 0o755))
    case .rmdir(let name): try done(Glibc.rmdir("\(folder)/\(name)"))
    case .symlink(let target, let name): try done(Glibc.symlink(target, "\(folder)/\(name)"))
    case .chmod(let name, let mode): try done(Glibc.chmod("\(folder)/\(name)", mode))
    case .mark(let name, let value): try Attributes.set("\(folder)/\(name)", value)
    case .unmark(let name): try Attributes.remove("\(folder)/\(name)")
    case .touch(let name, let seconds):
      let time = timespec(tv_sec: seconds, tv_nsec: 5)
      try done(utimensat(AT_FDCWD, "\(folder)/\(name)", [time, time], 0))
    case .command(let arguments), .revive(let arguments, _, _): try Action.run(arguments, folder)
    }
  }

  /// The bytes of ``scatter(_:_:)``.
  static func scattered(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(count * 10 - 9, 0))
    for index in stride(from: 0, to: bytes.count, by: 10) { bytes[index] = UInt8(ascii: "x") }
    return bytes
  }

  private func done(_ result: Int32) throws(Errno) {
    guard result == 0 else { throw Errno(errno, "\(self)") }
  }

  private func write(
    _ folder: String, _ name: String, _ flags: Int32, _ bytes: [UInt8], at offset: Int? = nil,
    synchronizing: Bool = false
  ) throws(Errno) {
    let file = Glibc.open("\(folder)/\(name)", flags | O_CLOEXEC, 0o644)
    guard file >= 0 else { throw Errno(errno, "\(self)") }
    var failure: Errno?
    var start = 0
    while start < bytes.count, failure == nil {
      let end = min(start + Action.piece, bytes.count)
      let count = bytes[start..<end].withUnsafeBytes { piece in
        offset.map { Glibc.pwrite(file, piece.baseAddress, piece.count, $0 + start) }
          ?? Glibc.write(file, piece.baseAddress, piece.count)
      }
      if count <= 0 { failure = Errno(errno, "\(self)") }
      start += max(count, 0)
    }
    if failure == nil, synchronizing, fsync(file) != 0 { failure = Errno(errno, "\(self)") }
    if Glibc.close(file) != 0 { failure = failure ?? Errno(errno, "\(self)") }
    if let failure { throw failure }
  }

  /// A command that does not end with 0 counts as EIO; one that finds no process running opens the library itself.
  private static func run(_ arguments: [String], _ folder: String) throws(Errno) {
    let words = arguments.map { $0.replacing("%", with: folder) }
    let output = try? SheafProgram.run(words, limit: .seconds(60))
    guard let output, output.status == 0 else {
      throw Errno(EIO, "sheaf \(words): \(output.map { "\($0)" } ?? "late")")
    }
  }
}
