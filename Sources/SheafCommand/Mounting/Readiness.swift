import FoundationEssentials
import Glibc
import SheafModel

/// Reports from a process in the background to the one that started it whether the mount is up: one line in a pipe.
struct Readiness: Sendable {
  private let descriptor: CInt

  /// - Parameter descriptor: The pipe's end for writing.
  init(descriptor: CInt) {
    self.descriptor = descriptor
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  func succeed(_ mount: MountInfo) { tell(.result(mount)) }

  func fail(_ error: SheafError) { tell(.error(error)) }

  private func tell(_ line: JobLine<MountInfo>) {
    let bytes = (try? JSONEncoder().encode(line)).map(Array.init) ?? []
    try? StandardOutput.write(bytes + [UInt8(ascii: "\n")], to: descriptor, named: "")
    close(descriptor)
  }

  /// Waits for the line.
  ///
  /// - Returns: The mount; nil if the process ended without a word.
  /// - Throws: The ``SheafError`` that the process reported.
  static func wait(_ descriptor: CInt) throws -> MountInfo? {
    var line: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while line.last != UInt8(ascii: "\n") {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      line += buffer[..<count]
    }
    switch try JSONDecoder().decode(JobLine<MountInfo>.self, from: Data(line)) {
    case .result(let mount): return mount
    case .error(let error): throw error
    case .progress: return nil
    }
  }
}
