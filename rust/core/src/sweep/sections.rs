//! The parts of the files that a round goes through, one after the other.

/// The more of them, the less is held for jobs that are complete and for the section being read: a round brings 1.6
/// times what memory holds of 450-byte records with 16 sections, 1.7 times with 32, and 1.8 times with 64.
pub(super) const SECTIONS: usize = 32;

/// Where each section begins, in record numbers; the last one ends with the records.
pub(super) struct Sections {
    firsts: Vec<u64>,
}

impl Sections {
    /// Sections with equal parts of all bytes that are wanted, as far as a sample of records tells: their numbers
    /// and sizes.
    pub fn of(mut sample: Vec<(u64, u64)>) -> Self {
        sample.sort_unstable();
        let whole: u64 = sample.iter().map(|(_, bytes)| bytes).sum();
        let (mut firsts, mut before) = (vec![0], 0);
        for (number, bytes) in sample {
            if before * SECTIONS as u64 >= whole * firsts.len() as u64 {
                firsts.push(number);
            }
            before += bytes;
        }
        Sections { firsts }
    }

    pub fn count(&self) -> usize {
        self.firsts.len()
    }

    pub fn first(&self, section: usize) -> u64 {
        self.firsts[section]
    }

    /// The section that a record lies in.
    pub fn of_record(&self, number: u64) -> usize {
        self.firsts.partition_point(|first| *first <= number) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_equal_parts_of_what_is_wanted() {
        let even = Sections::of((0..3200).map(|number| (number, 10)).collect());
        assert_eq!(even.count(), SECTIONS);
        assert!((0..SECTIONS).all(|section| even.first(section) == section as u64 * 100));
        // nothing is wanted of the first thousand, and the others grow larger
        let uneven = Sections::of((1000..2000).rev().map(|number| (number, number - 1000)).collect());
        let mut bytes = [0_u64; SECTIONS];
        (1000..2000).for_each(|number| bytes[uneven.of_record(number)] += number - 1000);
        assert!(bytes.iter().all(|bytes| bytes.abs_diff(499_500 / 32) < 1500), "{bytes:?}");
    }

    #[test]
    fn few_records_make_few_sections() {
        for (sample, count) in [(vec![], 1), (vec![(7, 1)], 1), (vec![(3, 1), (9, 1)], 2)] {
            let sections = Sections::of(sample);
            assert_eq!(sections.count(), count);
            assert_eq!((sections.of_record(0), sections.of_record(u64::MAX)), (0, count - 1));
        }
    }
}
