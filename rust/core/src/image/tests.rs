//! Laws of decoding, over the files that the fuzzers start from. What the pixels must be is compared with
//! TensorFlow, in `tests/records/test_image.py`.

use std::path::Path;

use super::*;

const SMALL: Shape = Shape { height: 7, width: 9, channels: 3 };

fn file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/image").join(name)).unwrap()
}

fn decoded(file: &[u8], shape: Shape) -> Result<Vec<u8>, Failure> {
    let mut out = vec![0; shape.bytes()];
    Decoder::default().decode(file, shape, &mut out).map(|()| out)
}

fn why(file: &[u8]) -> String {
    match decoded(file, SMALL) {
        Err(Failure::Unreadable(why)) => why.into_owned(),
        other => panic!("{other:?}"),
    }
}

const SOUND: [&str; 17] = [
    "jpeg_420",
    "jpeg_422",
    "jpeg_444_best",
    "jpeg_restarts",
    "jpeg_progressive",
    "jpeg_grey",
    "jpeg_cmyk",
    "jpeg_rgb",
    "jpeg_one_pixel",
    "png_rgb_interlaced",
    "png_rgb_16_bits",
    "png_grey_alpha",
    "png_rgb_one_transparent_colour",
    "png_palette",
    "png_one_bit",
    "png_rgba",
    "png_grey_4_bits",
];

#[test]
fn every_kind_gives_every_shape() {
    for name in SOUND {
        for (height, width) in [(1, 1), (3, 50), (30, 44), (99, 7)] {
            for channels in [1, 3, 4] {
                let shape = Shape { height, width, channels };
                assert!(decoded(&file(name), shape).is_ok(), "{name} as {shape:?}");
            }
        }
    }
}

#[test]
fn what_was_decoded_before_leaves_no_trace() {
    let mut used = Decoder::default();
    for (name, height) in SOUND.iter().cycle().zip([5, 40, 17]).chain(SOUND.iter().rev().zip(1..)) {
        for channels in [1, 3, 4] {
            let shape = Shape { height, width: 23, channels };
            let mut out = vec![77; shape.bytes()];
            used.decode(&file(name), shape, &mut out).unwrap();
            assert_eq!(out, decoded(&file(name), shape).unwrap(), "{name}");
        }
    }
}

#[test]
fn grey_colours_and_alpha_belong_together() {
    for name in SOUND {
        let shape = |channels| Shape { height: 6, width: 8, channels };
        let [grey, rgb, rgba] = [1, 3, 4].map(|channels| decoded(&file(name), shape(channels)).unwrap());
        for ((grey, rgb), rgba) in grey.iter().zip(rgb.as_chunks::<3>().0).zip(rgba.as_chunks::<4>().0) {
            assert_eq!(rgb, &rgba[..3], "{name}");
            let bright = 0.299 * f64::from(rgb[0]) + 0.587 * f64::from(rgb[1]) + 0.114 * f64::from(rgb[2]);
            assert!((f64::from(*grey) - bright).abs() < 3.0, "{name}: {grey} for {rgb:?}");
            assert!(rgba[3] == 255 || name.starts_with("png"), "{name}");
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_or_whole_all_the_same() {
    for name in SOUND {
        let whole = file(name);
        let wanted = decoded(&whole, SMALL).unwrap();
        let mut refused = 0;
        for cut in 0..whole.len() {
            match decoded(&whole[..cut], SMALL) {
                Ok(pixels) => assert_eq!(pixels, wanted, "{name} cut at {cut} of {}", whole.len()),
                Err(Failure::Unreadable(_)) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        // what may be missing: the marker at the end, and bits that only fill the last byte
        assert!(refused + 20 >= whole.len(), "{name}: {refused} of {}", whole.len());
    }
}

#[test]
fn any_byte_may_be_wrong() {
    for name in SOUND {
        let mut bytes = file(name);
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                bytes[at] ^= flip;
                let _ = decoded(&bytes, SMALL);
                bytes[at] ^= flip;
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    for (name, reason) in [
        ("empty", "neither JPEG nor PNG: it is empty"),
        ("gif", "a GIF; JPEG and PNG are read"),
        ("jpeg_claims_4_gigapixels", "JPEG: it claims 65535 x 65535 pixels; up to 64 Mi pixels are read"),
        ("png_claims_4_gigapixels", "PNG: it claims 65535 x 65535 pixels; up to 64 Mi pixels are read"),
        ("jpeg_claims_more_than_it_holds", "JPEG: it claims 1500 x 1500 pixels in "),
        ("jpeg_cut_short", "JPEG: its data ends in row 2 of 2 rows of blocks"),
        ("png_cut_short", "PNG: "),
    ] {
        assert!(why(&file(name)).starts_with(reason), "{name}: {}", why(&file(name)));
    }
    assert_eq!(why(b"\x00\x01\x02\x03\x04"), "neither JPEG nor PNG: 5 bytes that start with 00 01 02 03");
}

#[test]
fn kinds_of_jpeg_that_are_not_read_are_named() {
    let sound = file("jpeg_420");
    let frame = sound.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    for (marker, reason) in [
        (0xc3, "JPEG: a lossless JPEG is not read"),
        (0xc9, "JPEG: a JPEG with arithmetic codes is not read"),
        (0xc5, "JPEG: a hierarchical JPEG is not read"),
    ] {
        let mut other = sound.clone();
        other[frame + 1] = marker;
        assert_eq!(why(&other), reason);
    }
    let mut deep = sound.clone();
    deep[frame + 4] = 12;
    assert_eq!(why(&deep), "JPEG: a JPEG of 12 bits per sample is not read");
}

#[test]
fn no_image_takes_more_memory_than_it_said() {
    for name in SOUND {
        for side in [1, 16, 50] {
            let shape = Shape { height: side, width: side, channels: 3 };
            let mut decoder = Decoder::default();
            let (width, height, bytes) = decoder.open(&file(name), shape).unwrap().needs();
            let needed = bytes + resize::needed_bytes((width, height), shape);
            decoder.decode(&file(name), shape, &mut vec![0; shape.bytes()]).unwrap();
            let held = decoder.held_bytes();
            assert!(held <= needed, "{name} at {side}: {held} of {needed}");
        }
    }
}

#[test]
fn an_image_that_is_too_large_for_its_room_is_not_begun() {
    let room = Arc::new(Room::within(100, 1, std::iter::empty()));
    let mut decoder = Decoder::default();
    decoder.keep_within(&room);
    let failed = decoder.decode(&file("png_rgba"), SMALL, &mut vec![0; SMALL.bytes()]);
    assert!(
        matches!(failed, Err(Failure::TooLarge { width: 28, height: 20, needed_bytes: 2000.. })),
        "{failed:?}"
    );
    assert_eq!(decoder.pixels.bytes.capacity(), 0);
}

#[test]
fn what_a_large_image_took_is_given_back() {
    let one_byte = Shape { height: 0, width: 0, channels: 1 };
    // usual images have a mebibyte, so one that needs more has to borrow
    let room = Arc::new(Room::within(1 << 30, 1, [one_byte].into_iter()));
    let mut decoder = Decoder::default();
    decoder.keep_within(&room);
    let large = Shape { height: 600, width: 600, channels: 3 };
    decoder.decode(&file("jpeg_420"), large, &mut vec![0; large.bytes()]).unwrap();
    assert_eq!((decoder.pixels.bytes.capacity(), decoder.resizer.held_bytes()), (0, 0));
}

#[test]
fn what_unlike_images_leave_behind_together_is_no_more_than_one_may_take() {
    let usual_bytes = SMALL.usual_bytes();
    let mut decoder = Decoder::default();
    decoder.keep_within(&Arc::new(Room::within(1 << 30, 1, [SMALL].into_iter())));
    let mut decode = |left_behind: usize| {
        decoder.pixels.bytes = vec![0; left_behind];
        decoder.decode(&file("jpeg_progressive"), SMALL, &mut vec![0; SMALL.bytes()]).unwrap();
        decoder.held_bytes()
    };
    assert!((usual_bytes / 2..=usual_bytes).contains(&decode(usual_bytes / 2)));
    assert_eq!(decode(usual_bytes), 0);
}
