import FuzzDecoders
import Glibc

// libFuzzer with one of the decoders: `SHEAF_FUZZ_DECODER=NAME sheaf-fuzz [libFuzzer's arguments]`. Where a property
// does not hold, or a decoder traps, it ends and keeps the input.

/// libFuzzer, whose own `main` an executable of Swift cannot have.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

guard let name = getenv("SHEAF_FUZZ_DECODER"), Decoder.all.contains(where: { $0.name == String(cString: name) }) else {
  print("SHEAF_FUZZ_DECODER is one of: \(Decoder.all.map(\.name).joined(separator: " "))")
  exit(64)
}

/// The decoder, for a C function that can hold nothing.
enum Chosen {
  static let decoder = Decoder.all.first { $0.name == getenv("SHEAF_FUZZ_DECODER").map { String(cString: $0) } }!
}

var count = CommandLine.argc
var list = CommandLine.unsafeArgv
exit(
  runFuzzer(&count, &list) { bytes, count in
    do {
      try Chosen.decoder.check(Array(UnsafeBufferPointer(start: bytes, count: count)))
    } catch {
      fatalError("\(error)")
    }
    return 0
  })
