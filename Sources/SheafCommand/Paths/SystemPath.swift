import Glibc
import SheafModel

/// Paths of the machine as bytes, and the few calls that resolve them.
enum SystemPath {
  static let slash = UInt8(ascii: "/")

  /// The working directory, which the kernel tells without asking the file system that it is in.
  static func workingDirectory() throws(SheafError) -> [UInt8] {
    guard let path = getcwd(nil, 0) else { throw SheafError(systemError: errno, subject: "the working directory") }
    defer { free(path) }
    return bytes(path)
  }

  /// realpath(3), or the error number.
  static func resolve(_ path: [UInt8]) -> Result<[UInt8], SystemError> {
    guard !path.contains(0) else { return .failure(SystemError(code: EINVAL)) }
    let resolved = (path + [0]).withUnsafeBufferPointer { buffer in
      buffer.withMemoryRebound(to: CChar.self) { realpath($0.baseAddress!, nil) }
    }
    guard let resolved else { return .failure(SystemError(code: errno)) }
    defer { free(resolved) }
    return .success(bytes(resolved))
  }

  /// Resolves the part of an absolute path that exists.
  static func resolvingExisting(_ path: [UInt8]) -> [UInt8] {
    var (folder, missing): ([UInt8], [UInt8]) = (path, [])
    while true {
      if case .success(let resolved) = resolve(folder) { return join(resolved, missing) }
      let (parent, name) = split(folder)
      guard !name.isEmpty else { return path }
      missing = missing.isEmpty ? name : name + [slash] + missing
      folder = parent
    }
  }

  /// The path, made absolute. Only a relative path needs the working directory, which may be gone.
  static func absolute(_ path: [UInt8]) throws(SheafError) -> [UInt8] {
    path.first == slash ? path : absolute(path, from: try workingDirectory())
  }

  /// The path, made absolute: `directory` goes in front of a relative one.
  static func absolute(_ path: [UInt8], from directory: [UInt8]) -> [UInt8] {
    path.first == slash ? path : directory + [slash] + path
  }

  /// Folder and last component of an absolute path; trailing slashes do not count, and `/` has no last component.
  static func split(_ path: [UInt8]) -> (parent: [UInt8], name: [UInt8]) {
    var end = path.endIndex
    while end > 0, path[end - 1] == slash { end -= 1 }
    guard end > 0 else { return ([slash], []) }
    let start = path[..<end].lastIndex(of: slash) ?? -1
    return (start <= 0 ? [slash] : Array(path[..<start]), Array(path[(start + 1)..<end]))
  }

  /// The path of `name` in the folder `parent`.
  static func join(_ parent: [UInt8], _ name: [UInt8]) -> [UInt8] {
    if name.isEmpty { return parent }
    return parent == [slash] ? parent + name : parent + [slash] + name
  }

  /// The part of `path` below `folder`: empty for the folder itself, nil for a path elsewhere.
  static func part(of path: [UInt8], below folder: [UInt8]) -> [UInt8]? {
    if path == folder { return [] }
    let prefix = folder == [slash] ? folder : folder + [slash]
    return path.starts(with: prefix) ? Array(path.dropFirst(prefix.count)) : nil
  }

  private static func bytes(_ pointer: UnsafeMutablePointer<CChar>) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)))
  }
}

/// An error number of the operating system.
struct SystemError: Error, Equatable {
  let code: CInt
}

extension Collection<UInt8> {
  /// The bytes as text for people.
  var readable: String { String(decoding: self, as: UTF8.self) }
}
