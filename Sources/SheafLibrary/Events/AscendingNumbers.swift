/// Numbers in ascending order, in short blocks: adding and removing one moves no others but those of its block.
struct AscendingNumbers {
  private static let blockLength = 256

  private var blocks: [[Int64]] = []

  /// Adds a number that is higher than all others.
  mutating func append(_ number: Int64) {
    if let last = blocks.indices.last, blocks[last].count < Self.blockLength {
      blocks[last].append(number)
    } else {
      blocks.append([number])
    }
  }

  mutating func remove(_ number: Int64) {
    let block = Self.firstIndex(in: blocks) { ($0.last ?? 0) >= number }
    guard block < blocks.count else { return }
    let index = Self.firstIndex(in: blocks[block]) { $0 >= number }
    guard blocks[block][index] == number else { return }
    blocks[block].remove(at: index)
    if blocks[block].isEmpty { blocks.remove(at: block) }
  }

  /// Those that are higher than `number`.
  func after(_ number: Int64) -> some Sequence<Int64> {
    blocks[Self.firstIndex(in: blocks) { ($0.last ?? 0) > number }...].lazy.joined().lazy.filter { $0 > number }
  }

  var all: some Sequence<Int64> { blocks.lazy.joined() }

  /// The first index from which on something holds.
  private static func firstIndex<Element>(in elements: [Element], from holds: (Element) -> Bool) -> Int {
    var (low, high) = (0, elements.count)
    while low < high {
      let middle = (low + high) / 2
      if holds(elements[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
