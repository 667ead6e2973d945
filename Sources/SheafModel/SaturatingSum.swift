extension Int64 {
  /// The sum, or the largest or smallest number there is where that does not hold it: sizes of sparse files alone add up
  /// to more.
  package func addingSaturated(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
