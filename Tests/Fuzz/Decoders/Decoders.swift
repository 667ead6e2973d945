import SheafModel

/// Something that reads what comes from another side, and what holds of it for any bytes.
package struct Decoder: Sendable {
  /// Of the command line and of the corpus.
  package let name: String
  /// Reads bytes, and checks what was read.
  ///
  /// Throws ``Finding`` where a property does not hold.
  package let check: @Sendable ([UInt8]) throws -> Void

  /// All of them.
  package static let all = [
    contents, deltas, packs, frames, chunks, writeLogs, changeRecords, rows, requests, queries, bodies, events, stream,
    configuration, mountOptions, mountTables, handles, hubAnswers, hubSends, hubPages, hubProofs, hubLinks,
    hubManifests, hubContents, hubPeers,
  ]
}

/// A property that does not hold.
package struct Finding: Error, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}

/// - Throws: ``Finding`` where `condition` is not so.
func expect(_ condition: Bool, _ property: @autoclosure () -> String) throws {
  if !condition { throw Finding(property()) }
}

/// What `decode` makes, nil where it refuses the bytes as it should.
func attempt<Value>(
  allowing kinds: Set<SheafError.Kind> = [.corrupt, .invalid], _ decode: () throws -> Value
) throws -> Value? {
  do {
    return try decode()
  } catch let error as SheafError where kinds.contains(error.kind) {
    return nil
  } catch let finding as Finding {
    throw finding
  } catch {
    throw Finding("refused with \(error)")
  }
}

/// Takes bytes apart, as if zeros followed them.
struct Input {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  mutating func number() -> Int64 { (0..<8).reduce(0) { number, _ in number << 8 | Int64(byte()) } }

  /// As many bytes as the next one or two say.
  mutating func piece() -> [UInt8] {
    let count = Int(byte()) | (Int(byte()) & 0x0F) << 8
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func all() -> [UInt8] {
    defer { rest = [] }
    return Array(rest)
  }
}
