import SheafModel
import Testing

@testable import SheafLibrary

/// The tables of the rooms, against plain ones.
struct TableTests {
  @Test func aSegmentedDictionaryIsADictionary() {
    var random = SeededRandom()
    let note = random.note
    var table = SegmentedDictionary<Int, Int>()
    var model: [Int: Int] = [:]
    for step in 0..<5000 {
      let key = Int.random(in: 0..<400, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1: (table[key], model[key]) = (step, step)
      case 2: (table[key], model[key]) = (nil, nil)
      case 3: #expect(table.removeValue(forKey: key) == model.removeValue(forKey: key), note)
      default:
        table.update(key, default: 7) { $0 += 1 }
        model[key, default: 7] += 1
      }
      #expect(table.count == model.count && table[key] == model[key], note)
    }
    #expect(table.values.sorted() == model.values.sorted(), note)
    table.removeAll { $0 % 2 == 0 }
    #expect(table.values.sorted() == model.values.filter { $0 % 2 != 0 }.sorted(), note)
    #expect(table.count == table.values.count, note)
  }

  /// What has to move when one of them grows is a small part of all.
  @Test func segmentsAreOfOneSize() {
    var table = SegmentedDictionary<Int64, Int64>()
    for key: Int64 in 0..<65_536 { table[key] = key }
    var sizes: [Int] = []
    for segment in 0..<SegmentedDictionary<Int64, Int64>.segmentCount {
      sizes.append(table.removeAll(inSegment: segment) { _ in false })
    }
    #expect(sizes.reduce(0, +) == 65_536 && sizes.max() ?? 0 < 2 * 65_536 / sizes.count)
  }

  @Test func anAgingTableKnowsTheOrder() {
    var random = SeededRandom()
    let note = random.note
    var table = AgingTable<Int, Int>()
    var model: [(key: Int, value: Int)] = []
    for step in 0..<5000 {
      let key = Int.random(in: 0..<60, using: &random)
      let index = model.firstIndex { $0.key == key }
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1:
        table.append(key, step)
        if let index { model.remove(at: index) }
        model.append((key, step))
      case 2:
        table[key] = step
        if let index { model[index].value = step } else { model.append((key, step)) }
      case 3:
        table.renew(key)
        if let index { model.append(model.remove(at: index)) }
      case 4:
        table[key] = nil
        if let index { model.remove(at: index) }
      default:
        if let oldest = table.oldestKey { table.remove(oldest) }
        if !model.isEmpty { model.removeFirst() }
      }
      #expect(table.oldestKey == model.first?.key && table.count == model.count, note)
      #expect(table.oldestKeys(100) { _ in true } == model.map(\.key), note)
      #expect(table.newestValues(10) == model.suffix(10).reversed().map(\.value), note)
      #expect(table[key] == model.first { $0.key == key }?.value, note)
    }
    #expect(table.values.sorted() == model.map(\.value).sorted(), note)
    #expect(table.oldestKeys(2) { _ in true } == model.prefix(2).map(\.key), note)
    #expect(table.oldestKeys(100) { $0 != model.last?.value } == model.dropLast().map(\.key), note)
  }

  @Test func ascendingNumbersStayInOrder() {
    var random = SeededRandom()
    let note = random.note
    var numbers = AscendingNumbers()
    var model: [Int64] = []
    var last: Int64 = 0
    for step in 0..<6000 {
      if Int.random(in: 0..<3, using: &random) > 0 {
        last += Int64.random(in: 1...3, using: &random)
        numbers.append(last)
        model.append(last)
      } else {
        let number = Int64.random(in: 0...(last + 1), using: &random)
        numbers.remove(number)
        model.removeAll { $0 == number }
      }
      guard step % 50 == 0 else { continue }
      let start = Int64.random(in: 0...(last + 1), using: &random)
      #expect(Array(numbers.after(start)) == model.filter { $0 > start } && Array(numbers.all) == model, note)
    }
    for number in model { numbers.remove(number) }
    #expect(Array(numbers.all) == [] && Array(numbers.after(0)) == [], note)
  }
}
